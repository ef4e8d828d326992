package application

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Authenticate returns the caller of an access token for one resource, or of a token of the site
// with AcceptHostTokens. It refuses with InvalidToken, or with TooManyGuesses for a token of the
// site; any other error is an outage, and the token may be valid.
func (s *Server) Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error) {
	if s.isDirect(bearer) {
		caller, _, err := s.authenticateDirect(ctx, bearer, resource)
		return caller, err
	}
	token, err := s.accessToken(bearer)
	if err != nil {
		return oauth.Caller{}, err
	}
	_, caller, err := s.authenticate(ctx, token, resource)
	return caller, err
}

func (s *Server) accessToken(bearer string) (oauth.Secret, error) {
	token, err := s.parseSecret(oauth.AccessTokenSecret, bearer)
	if errors.Is(err, oauth.ErrNotFound) {
		return oauth.Secret{}, oauth.RefuseUnknownToken()
	}
	return token, err
}

func (s *Server) authenticate(ctx context.Context, token oauth.Secret, resource oauth.Resource) (*oauth.AccessGrant,
	oauth.Caller, error) {
	now := s.now()
	grant, caller, err := s.admit(ctx, token, resource, now)
	if err == nil && grant.NeedsRecheck(token, s.settings, now) {
		if err := s.recheck(ctx, grant, token); err != nil {
			return nil, oauth.Caller{}, err
		}
		// the grant may have changed or ended during the recheck
		grant, caller, err = s.admit(ctx, token, resource, now)
	}
	if err != nil {
		return nil, oauth.Caller{}, err
	}
	s.uses.add(grant, token, now)
	return grant, caller, nil
}

func (s *Server) admit(ctx context.Context, token oauth.Secret, resource oauth.Resource,
	now time.Time) (*oauth.AccessGrant, oauth.Caller, error) {
	if grant := s.store.Trusted(token.Grant()); grant != nil {
		if caller, err := s.admitBy(ctx, grant, token, resource, now); err == nil {
			return grant, caller, nil
		}
	}
	grant, err := s.store.Grant(ctx, token.Grant())
	if errors.Is(err, oauth.ErrNotFound) {
		return nil, oauth.Caller{}, oauth.RefuseUnknownToken()
	}
	if err != nil {
		return nil, oauth.Caller{}, err
	}
	caller, err := s.admitBy(ctx, grant, token, resource, now)
	return grant, caller, err
}

func (s *Server) admitBy(ctx context.Context, grant *oauth.AccessGrant, token oauth.Secret, resource oauth.Resource,
	now time.Time) (oauth.Caller, error) {
	connection.From(ctx).Identify(grant.ID(), s.settings.LabelOf(grant.Client(), grant.ClientName()))
	return grant.Admits(token, resource, now)
}
