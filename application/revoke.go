package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// Revoke ends the grant of a refresh token, or a single access token. It ignores tokens that are
// unknown or of another client.
func (s Tokens) Revoke(ctx context.Context, by client.Credentials, token string) error {
	if _, err := s.admitClient(by); err != nil {
		return err
	}
	secret, err := s.parseSecret(oauth.RefreshTokenSecret, token)
	if errors.Is(err, oauth.ErrNotFound) {
		secret, err = s.parseSecret(oauth.AccessTokenSecret, token)
	}
	if err != nil {
		return insteadOfNotFound(err, nil)
	}
	grant, err := s.store.Grant(ctx, secret.Grant())
	if err != nil { // so that an unknown token does not take the store's write lock
		return insteadOfNotFound(err, nil)
	}
	id, err := s.identify(ctx, grant, by)
	if err != nil {
		return err
	}
	ended, now := false, s.now()
	err = s.store.UpdateGrant(ctx, grant, func(g *oauth.AccessGrant) error {
		ended = g.Revoke(secret, id, now)
		return nil
	})
	if err == nil && ended {
		s.announceEnd(ctx, grant.ID(), oauth.EndedByRevocation, "")
	}
	return insteadOfNotFound(err, nil)
}
