package application

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// noteLimit is how long a call may be held up to note that it happened.
const noteLimit = 250 * time.Millisecond

// Authenticate returns who stands behind an access token for one resource (G6-G8). It refuses with InvalidToken; any other
// error is an outage and says nothing about the token (G11).
func (s *Server) Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error) {
	token, err := accessToken(bearer)
	if err != nil {
		return oauth.Caller{}, err
	}
	_, caller, err := s.authenticate(ctx, token, resource)
	return caller, err
}

func accessToken(bearer string) (oauth.Secret, error) {
	token, ok := oauth.ParseSecret(oauth.AccessTokenSecret, bearer)
	if !ok {
		return oauth.Secret{}, oauth.UnknownToken()
	}
	return token, nil
}

func (s *Server) authenticate(ctx context.Context, token oauth.Secret, resource oauth.Resource) (*oauth.AccessGrant, oauth.Caller, error) {
	now := s.now()
	presented := token.Digest()
	grant, caller, err := s.admit(ctx, presented, resource, now)
	if err == nil && grant.NeedsRecheck(presented, s.settings, now) {
		if err := s.recheck(ctx, grant, token); err != nil {
			return nil, oauth.Caller{}, err
		}
		grant, caller, err = s.admit(ctx, presented, resource, now) // it may have changed, or ended, while the site was asked (I18)
	}
	if err != nil {
		return nil, oauth.Caller{}, err
	}
	if grant.NotesUse(now) {
		s.noteUse(ctx, presented)
	}
	return grant, caller, nil
}

func (s *Server) admit(ctx context.Context, token oauth.Digest, resource oauth.Resource, now time.Time) (*oauth.AccessGrant, oauth.Caller, error) {
	grant, err := s.ports.Store.Grant(ctx, token)
	if errors.Is(err, oauth.ErrNotFound) {
		return nil, oauth.Caller{}, oauth.UnknownToken()
	}
	if err != nil {
		return nil, oauth.Caller{}, err
	}
	trace.From(ctx).About(grant.ID(), grant.Client().String())
	caller, err := grant.Admits(token, resource, now)
	return grant, caller, err
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
