package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// recheck asks the site during use, once for all calls of a grant at the same time (J8), and returns the person's roles as they
// are now. A host token that no longer holds ends the grant and is InvalidToken; while the site cannot tell, the error is no
// refusal of the token.
func (s *Server) recheck(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) ([]string, error) {
	roles, err, _ := s.rechecks.Do(grant.ID(), func() (any, error) {
		return s.askDuringUse(context.WithoutCancel(ctx), grant, token)
	})
	if err != nil {
		return nil, err
	}
	return roles.([]string), nil
}

func (s *Server) askDuringUse(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) ([]string, error) {
	host, err := grant.HostTokenInUse(token, s.settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		return nil, s.endInUse(ctx, token, oauth.EndedByLostKey)
	}
	if err != nil {
		return nil, err
	}
	principal, err := s.verify(ctx, host)
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken || err == nil && !grant.StandsFor(principal, s.settings) {
		return nil, s.endInUse(ctx, token, oauth.EndedByHostToken)
	}
	if err != nil {
		return nil, err
	}
	now := s.now()
	err = s.ports.Store.UpdateGrant(ctx, token.Digest(), func(g *oauth.AccessGrant) error {
		g.Reverified(principal, s.settings, now)
		return nil
	})
	return principal.Roles, err
}

func (s *Server) endInUse(ctx context.Context, token oauth.Secret, reason oauth.EndReason) error {
	if err := s.end(ctx, token.Digest(), reason); err != nil {
		return err
	}
	return oauth.UnknownToken()
}
