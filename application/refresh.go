package application

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// Refresh rotates a refresh token after asking the site whether the host token still holds (D22-D28).
func (s *Server) Refresh(ctx context.Context, client oauth.Credentials, p oauth.Parameters) (*oauth.Tokens, error) {
	trace.From(ctx).Reach(trace.Refresh)
	trace.From(ctx).About("", s.named(client))
	token, err := s.presented(ctx, p, "refresh_token", oauth.RefreshTokenSecret)
	if err != nil {
		return nil, err
	}
	grant, err := s.grantOf(ctx, token)
	if err != nil {
		return nil, err
	}
	trace.From(ctx).About(grant.ID(), grant.Client().String())
	by := oauth.Refreshment{Token: token, Resources: p.All("resource"), Scope: p.Get("scope")}
	if by.Client, err = s.identify(ctx, grant, client); err != nil {
		return nil, err
	}
	now := s.now()
	if err := grant.MayRefresh(by, s.settings, now); err != nil {
		return nil, s.refuseRefresh(ctx, token.Digest(), err)
	}
	if by.Host, err = s.openHost(ctx, grant, token); err != nil {
		return nil, err
	}
	defer by.Host.Forget()
	if by.Principal, err = s.reverify(ctx, grant, token, by.Host.HostToken); err != nil {
		return nil, err
	}
	fresh, err := s.secrets(oauth.AccessTokenSecret, oauth.RefreshTokenSecret)
	if err != nil {
		return nil, err
	}
	by.Access, by.Successor = fresh[0], fresh[1]
	return s.rotate(ctx, by, now)
}

// openHost ends a grant whose host token cannot be opened any more (J6).
func (s *Server) openHost(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret) (*oauth.UnsealedHostToken, error) {
	host, err := grant.HostToken(token, s.settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		return nil, s.endByLostKey(ctx, token, s.endRefused)
	}
	return host, err
}

// reverify asks the site again, outside any transaction (I18): a token that no longer holds ends the grant (J6); a site that cannot tell changes
// nothing (D25).
func (s *Server) reverify(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret, host oauth.HostToken) (oauth.Principal, error) {
	principal, err := s.verifyAgain(ctx, grant.Resource(), host, grant.Subject())
	if kind, _ := oauth.KindOf(err); kind == oauth.WrongHostToken || err == nil && !grant.StandsFor(principal, s.settings) {
		return oauth.Principal{}, s.endRefused(ctx, token, oauth.EndedByHostToken)
	}
	return principal, err
}

// rotate goes by the instant at which the token was presented: however long the site took, the window counts from there (D27).
// Who is overtaken meanwhile presented an honest token and does not end the family.
func (s *Server) rotate(ctx context.Context, by oauth.Refreshment, now time.Time) (*oauth.Tokens, error) {
	var tokens *oauth.Tokens
	var grant string
	err := s.ports.Store.UpdateGrant(ctx, by.Token.Digest(), func(g *oauth.AccessGrant) (err error) {
		grant = g.ID()
		tokens, err = g.Refresh(by, s.settings, now)
		return err
	})
	if err != nil {
		return nil, unknownGrant(err)
	}
	s.audit(ctx, "refreshed", "grant", grant)
	return tokens, nil
}

// refuseRefresh ends the whole family when a replaced token comes back too late (D27).
func (s *Server) refuseRefresh(ctx context.Context, token oauth.Digest, refusal error) error {
	if !errors.Is(refusal, oauth.ErrReused) {
		return refusal
	}
	if err := s.end(ctx, token, oauth.EndedByReuse); err != nil {
		return err
	}
	return refusal
}

func (s *Server) endRefused(ctx context.Context, token oauth.Secret, reason oauth.EndReason) error {
	if err := s.end(ctx, token.Digest(), reason); err != nil {
		return err
	}
	return oauth.UnknownGrant()
}
