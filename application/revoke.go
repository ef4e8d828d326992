package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Revoke ends a refresh token's grant or a single access token (E1-E10). Whatever is not the client's own live token is passed
// over without a word; only an outage is an error, and a client that does not prove who it is where it has to (D33).
func (s *Server) Revoke(ctx context.Context, by oauth.Credentials, token string) error {
	secret, ok := oauth.ParseSecret(oauth.RefreshTokenSecret, token)
	if !ok {
		secret, ok = oauth.ParseSecret(oauth.AccessTokenSecret, token)
	}
	if !ok {
		return nil
	}
	found, err := s.ports.Store.Grant(ctx, secret.Digest())
	if err != nil { // strangers' tokens never take the write lock
		return forgiveUnknown(err)
	}
	client, err := s.identify(ctx, found, by)
	if err != nil {
		return err
	}
	return s.revoke(ctx, secret.Digest(), client)
}

func (s *Server) revoke(ctx context.Context, token oauth.Digest, client string) error {
	var grant string
	var ended bool
	now := s.now()
	err := s.ports.Store.UpdateGrant(ctx, token, func(g *oauth.AccessGrant) error {
		grant, ended = g.ID(), g.Revoke(token, client, now)
		return nil
	})
	if err == nil && ended {
		s.announceEnd(ctx, grant, oauth.EndedByRevocation)
	}
	return forgiveUnknown(err)
}

func forgiveUnknown(err error) error {
	if errors.Is(err, oauth.ErrNotFound) {
		return nil
	}
	return err
}
