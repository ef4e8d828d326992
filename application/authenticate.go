package application

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Authenticate returns the caller of an access token for one resource or, with AcceptHostTokens, of
// a token of the site. It refuses with InvalidToken, and a token of the site also with
// TooManyGuesses. Any other error is an outage, and the token may be valid.
func (s Tokens) Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error) {
	caller, _, err := s.authenticate(ctx, bearer, resource, false)
	return caller, err
}

// AuthenticateWithHostToken is Authenticate and also returns the host token. It refuses an access
// token that cannot open it (issued before HostTokenInUse); the next refresh returns one that can.
func (s Tokens) AuthenticateWithHostToken(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller,
	oauth.HostToken, error) {
	return s.authenticate(ctx, bearer, resource, true)
}

// authenticate opens the host token of a grant only if opensHost is true.
func (s *core) authenticate(ctx context.Context, bearer string, resource oauth.Resource, opensHost bool) (
	caller oauth.Caller, host oauth.HostToken, err error) {
	if s.isDirect(bearer) {
		return s.authenticateDirect(ctx, bearer, resource)
	}
	now := s.now()
	grant, token, caller, err := s.admit(ctx, bearer, resource, now)
	if err == nil && grant.NeedsRecheck(token, s.Settings, now) {
		if err = s.recheck(ctx, grant, token); err == nil { // recheck may have changed or ended the grant
			grant, token, caller, err = s.admit(ctx, bearer, resource, now)
		}
	}
	if err != nil {
		return oauth.Caller{}, host, err
	}
	s.uses.add(grant, token, now)
	if !opensHost {
		return caller, host, nil
	}
	host, err = grant.UnsealWithAccessToken(token, s.Settings)
	if errors.Is(err, oauth.ErrHostTokenLost) {
		err = cmp.Or(s.checkSecretAgreement(), oauth.RefuseTokenWithoutKey())
	}
	if err != nil {
		return oauth.Caller{}, oauth.HostToken{}, err
	}
	return caller, host, nil
}

// admit returns the grant and the caller of an access token. A trusted grant may only admit the
// token; only the stored grant may refuse it.
func (s *core) admit(ctx context.Context, bearer string, resource oauth.Resource, now time.Time) (
	grant *oauth.AccessGrant, token oauth.Secret, caller oauth.Caller, err error) {
	if token, err = s.parseSecret(oauth.AccessTokenSecret, bearer); err != nil {
		return nil, token, caller, insteadOfNotFound(err, oauth.RefuseUnknownToken())
	}
	if grant = s.store.Trusted(token.Grant()); grant != nil {
		s.traceAs(ctx, grant.ID(), grant.Client())
		if caller, err = grant.Admits(token, resource, now); err == nil {
			return grant, token, caller, nil
		}
	}
	if grant, err = s.store.Grant(ctx, token.Grant()); err != nil {
		return nil, token, caller, insteadOfNotFound(err, oauth.RefuseUnknownToken())
	}
	s.traceAs(ctx, grant.ID(), grant.Client())
	caller, err = grant.Admits(token, resource, now)
	return grant, token, caller, err
}

// insteadOfNotFound returns instead for ErrNotFound, and any other error as it is.
func insteadOfNotFound(err, instead error) error {
	if errors.Is(err, oauth.ErrNotFound) {
		return instead
	}
	return err
}
