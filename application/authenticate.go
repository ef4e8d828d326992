package application

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// noteLimit is how long a call may be held up to note that it happened.
const noteLimit = 250 * time.Millisecond

// Authenticate returns who stands behind an access token for one resource (G6-G8). It refuses with InvalidToken; any other
// error is an outage and says nothing about the token (G11).
func (s *Server) Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error) {
	token, ok := oauth.ParseSecret(oauth.AccessTokenSecret, bearer)
	if !ok {
		return oauth.Caller{}, oauth.UnknownToken()
	}
	grant, err := s.ports.Store.Grant(ctx, token.Digest())
	if errors.Is(err, oauth.ErrNotFound) {
		return oauth.Caller{}, oauth.UnknownToken()
	}
	if err != nil {
		return oauth.Caller{}, err
	}
	now := s.now()
	caller, err := grant.Admits(token.Digest(), resource, now)
	if err != nil {
		return oauth.Caller{}, err
	}
	if grant.NeedsRecheck(token.Digest(), s.settings, now) {
		if caller.Roles, err = s.recheck(ctx, grant, token); err != nil {
			return oauth.Caller{}, err
		}
	}
	if grant.Used(now) {
		s.noteUse(ctx, token.Digest())
	}
	return caller, nil
}

// noteUse keeps when the grant was last used; a store that cannot is no reason to turn the caller away.
func (s *Server) noteUse(ctx context.Context, token oauth.Digest) {
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	now := s.now()
	err := s.ports.Store.UpdateGrant(ctx, token, func(g *oauth.AccessGrant) error {
		g.Used(now)
		return nil
	})
	if err != nil {
		s.ports.Logger.WarnContext(ctx, "last use not stored", "error", err)
	}
}
