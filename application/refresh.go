package application

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// Refresh verifies the host token again and rotates the refresh token.
func (s *Server) Refresh(ctx context.Context, client oauth.Credentials, p oauth.Parameters) (*oauth.Tokens, error) {
	trace.From(ctx).Record(trace.Refresh)
	label, err := s.openRegistered(client)
	trace.From(ctx).Identify("", label)
	if err != nil {
		return nil, err
	}
	token, err := s.readSecret(ctx, p, "refresh_token", oauth.RefreshTokenSecret)
	if err != nil {
		return nil, err
	}
	grant, err := s.grantOf(ctx, token)
	if err != nil {
		return nil, err
	}
	trace.From(ctx).Identify(grant.ID(), s.settings.LabelOf(grant.Client(), grant.ClientName()))
	by := oauth.RefreshRequest{Token: token, Resources: p.All("resource"), Scope: p.Get("scope")}
	if by.Client, err = s.identify(ctx, grant, client); err != nil {
		return nil, err
	}
	now := s.now()
	if err := grant.MayRefresh(by, s.settings, now); err != nil {
		return nil, s.refuseRefresh(ctx, grant.ID(), err)
	}
	if by.Host, err = s.unsealHost(ctx, grant, token); err != nil {
		return nil, err
	}
	defer by.Host.Forget()
	if by.Principal, err = s.reverify(ctx, grant, by.Host.HostToken, oauth.RefuseUnknownGrant()); err != nil {
		return nil, err
	}
	if by.Fresh, err = s.freshEntropy(); err != nil {
		return nil, err
	}
	return s.rotate(ctx, by, now)
}

// unsealHost unseals the host token. It ends a grant whose host token cannot be unsealed any more.
func (s *Server) unsealHost(ctx context.Context, grant *oauth.AccessGrant,
	token oauth.Secret) (*oauth.UnsealedHostToken, error) {
	host, err := grant.UnsealWithRefreshToken(token, s.settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		return nil, s.endByLostKey(ctx, grant.ID(), oauth.RefuseUnknownGrant())
	}
	return host, err
}

// rotate counts the grace window from now, the time at which the token was presented, even if the
// verifier took long. A request that loses a race does not end the family.
func (s *Server) rotate(ctx context.Context, by oauth.RefreshRequest, now time.Time) (*oauth.Tokens, error) {
	var tokens *oauth.Tokens
	err := s.ports.Store.UpdateGrant(ctx, by.Token.Grant(), func(g *oauth.AccessGrant) (err error) {
		g.RecordUse(s.uses.of(g.ID()))
		tokens, err = g.Refresh(by, s.settings, now)
		return err
	})
	if err != nil {
		return nil, unknownGrant(err)
	}
	s.audit(ctx, "refreshed", "grant", by.Token.Grant())
	return tokens, nil
}

// refuseRefresh ends the grant when a replaced token is presented that gets no successor any more.
func (s *Server) refuseRefresh(ctx context.Context, grant string, refusal error) error {
	if !errors.Is(refusal, oauth.ErrReused) {
		return refusal
	}
	return s.endAndRefuse(ctx, grant, oauth.EndedByReuse, refusal)
}
