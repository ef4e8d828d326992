package application

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Refresh verifies the host token again and rotates the refresh token.
func (s *Server) Refresh(ctx context.Context, client oauth.Credentials, p oauth.Parameters) (*oauth.Tokens, error) {
	connection.From(ctx).Record(connection.Refresh)
	label, err := s.admitClient(client)
	connection.From(ctx).Identify("", label)
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
	connection.From(ctx).Identify(grant.ID(), s.settings.LabelOf(grant.Client(), grant.ClientName()))
	by := oauth.RefreshRequest{Token: token, Resources: p.All("resource"), Scope: p.Get("scope")}
	if by.Client, err = s.identify(ctx, grant, client); err != nil {
		return nil, err
	}
	now := s.now()
	if refusal := grant.MayRefresh(by, s.settings, now); refusal != nil {
		return nil, s.refuseRefresh(ctx, grant, refusal)
	}
	if by.Host, by.Principal, err = s.recheckForRefresh(ctx, grant, token); errors.Is(err, errReplaced) {
		if grant, err = s.grantOf(ctx, token); err == nil {
			by.Host, by.Principal, err = s.recheckForRefresh(ctx, grant, token)
		}
	}
	if err != nil {
		return nil, err
	}
	defer by.Host.Forget()
	if by.Fresh, err = s.freshEntropy(); err != nil {
		return nil, err
	}
	return s.rotate(ctx, grant, by, now)
}

// recheckForRefresh unseals the host token and verifies it, or ends the grant. The caller must call
// Forget on the token.
func (s *Server) recheckForRefresh(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) (
	*oauth.UnsealedHostToken, oauth.Principal, error) {
	host, err := grant.UnsealWithRefreshToken(token, s.settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		err = s.endByLostKey(ctx, grant, oauth.RefuseUnknownGrant())
	}
	if err != nil {
		return nil, oauth.Principal{}, err
	}
	principal, err := s.reverify(ctx, grant, host.HostToken, oauth.RefuseUnknownGrant())
	if err != nil {
		host.Forget()
		return nil, oauth.Principal{}, err
	}
	return host, principal, nil
}

// rotate counts the grace window from now, the time at which the token was presented, even if the
// verifier took long. A request that loses a race does not end the family.
func (s *Server) rotate(ctx context.Context, grant *oauth.AccessGrant, by oauth.RefreshRequest,
	now time.Time) (*oauth.Tokens, error) {
	var tokens *oauth.Tokens
	err := s.store.UpdateGrant(ctx, grant, func(g *oauth.AccessGrant) (err error) {
		g.RecordUse(s.uses.of(g.ID()))
		tokens, err = g.Refresh(by, s.settings, now)
		return err
	})
	if err != nil {
		return nil, unknownGrant(err)
	}
	s.audit(ctx, "refreshed", "grant", grant.ID())
	return tokens, nil
}

// refuseRefresh ends the grant when a replaced token is presented that gets no successor any more.
func (s *Server) refuseRefresh(ctx context.Context, grant *oauth.AccessGrant, refusal error) error {
	if !errors.Is(refusal, oauth.ErrReused) {
		return refusal
	}
	return s.endAndRefuse(ctx, grant, oauth.EndedByReuse, refusal)
}
