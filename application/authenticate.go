package application

import (
	"context"
	"errors"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// recordUseTimeout bounds the delay of a call by the write of its last use.
const recordUseTimeout = 250 * time.Millisecond

// Authenticate returns the caller of an access token for one resource (G6-G8). It refuses with InvalidToken; any other error is an outage, and the
// token may be valid (G11).
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
		return oauth.Secret{}, oauth.RefuseUnknownToken()
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
		grant, caller, err = s.admit(ctx, presented, resource, now) // the grant may have changed or ended during the recheck (I18)
	}
	if err != nil {
		return nil, oauth.Caller{}, err
	}
	if grant.ShouldRecordUse(now) {
		s.recordUse(ctx, presented)
	}
	return grant, caller, nil
}

func (s *Server) admit(ctx context.Context, token oauth.Digest, resource oauth.Resource, now time.Time) (*oauth.AccessGrant, oauth.Caller, error) {
	grant, err := s.ports.Store.Grant(ctx, token)
	if errors.Is(err, oauth.ErrNotFound) {
		return nil, oauth.Caller{}, oauth.RefuseUnknownToken()
	}
	if err != nil {
		return nil, oauth.Caller{}, err
	}
	trace.From(ctx).Identify(grant.ID(), s.settings.LabelOf(grant.Client()))
	caller, err := grant.Admits(token, resource, now)
	return grant, caller, err
}

// recordUse stores the time of the last use. A failure is only logged.
func (s *Server) recordUse(ctx context.Context, token oauth.Digest) {
	ctx, cancel := context.WithTimeout(ctx, recordUseTimeout)
	defer cancel()
	now := s.now()
	err := s.ports.Store.UpdateGrant(ctx, token, func(g *oauth.AccessGrant) error {
		g.RecordUse(now)
		return nil
	})
	if err != nil {
		s.ports.Logger.WarnContext(ctx, "cannot store the last use of a grant", "error", err)
	}
}
