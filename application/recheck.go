package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// recheck asks the site during use, once for all calls of a grant at the same time (J8). A host token that no longer holds ends
// the grant and is InvalidToken; while the site cannot tell, the error is no refusal of the token.
func (s *Server) recheck(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) error {
	_, err, _ := s.rechecks.Do(grant.ID(), func() (any, error) {
		return nil, s.askDuringUse(context.WithoutCancel(ctx), grant, token)
	})
	return err
}

func (s *Server) askDuringUse(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) error {
	host, err := grant.HostTokenInUse(token, s.settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		return s.endByLostKey(ctx, token, s.endInUse)
	}
	if err != nil {
		return err
	}
	asked := s.now()
	principal, err := s.verifyAgain(ctx, grant.Resource(), host, grant.Subject())
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken || err == nil && !grant.StandsFor(principal, s.settings) {
		return s.endInUse(ctx, token, oauth.EndedByHostToken)
	}
	if err != nil {
		return err
	}
	return s.ports.Store.UpdateGrant(ctx, token.Digest(), func(g *oauth.AccessGrant) error {
		g.Reverified(principal, s.settings, asked)
		return nil
	})
}

func (s *Server) endInUse(ctx context.Context, token oauth.Secret, reason oauth.EndReason) error {
	if err := s.end(ctx, token.Digest(), reason); err != nil {
		return err
	}
	return oauth.UnknownToken()
}
