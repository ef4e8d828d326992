package application

import (
	"cmp"
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// Refresh verifies the host token again and rotates the refresh token. It ends the grant when a
// public client presents a replaced token that gets no successor any more.
func (s Tokens) Refresh(ctx context.Context, by client.Credentials, p oauth.Parameters) (*oauth.Tokens, error) {
	token, err := s.readSecret(ctx, attempt.Refresh, by, p, "refresh_token", oauth.RefreshTokenSecret)
	if err != nil {
		return nil, err
	}
	grant, err := s.store.Grant(ctx, token.Grant())
	if err != nil {
		return nil, s.limitUnknown(ctx, err)
	}
	s.traceAs(ctx, grant.ID(), grant.Client())
	request := oauth.RefreshRequest{Token: token, Resources: p.All("resource"), Scope: p.Get("scope")}
	if request.Client, err = s.identify(ctx, grant, by); err != nil {
		return nil, err
	}
	now := s.now()                         // the grace window counts from here, even if the verifier takes long
	grant.RecordUse(s.uses.of(grant.ID())) // MayRefresh depends on the last use
	refusal := grant.MayRefresh(request, s.Settings, now)
	if errors.Is(refusal, oauth.ErrReused) {
		_, err = s.endAuthorization(ctx, grant.ID(), oauth.EndedByReuse)
	}
	if refusal != nil {
		return nil, cmp.Or(err, refusal)
	}
	unseal := func(g *oauth.AccessGrant) (*oauth.UnsealedHostToken, error) {
		return g.UnsealWithRefreshToken(token, s.Settings)
	}
	if request.Host, request.Principal, err = s.reverify(ctx, grant, unseal, oauth.RefuseUnknownGrant()); err != nil {
		return nil, err
	}
	defer request.Host.Forget()
	if request.Fresh, err = s.freshEntropy(); err != nil {
		return nil, err
	}
	var tokens *oauth.Tokens
	err = s.store.UpdateGrant(ctx, grant, func(g *oauth.AccessGrant) (err error) {
		g.RecordUse(s.uses.of(g.ID()))
		tokens, err = g.Refresh(request, s.Settings, now)
		return err
	})
	if err != nil {
		return nil, insteadOfNotFound(err, oauth.RefuseUnknownGrant())
	}
	s.audit(ctx, "refreshed", "grant", grant.ID())
	return tokens, nil
}
