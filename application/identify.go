package application

import (
	"context"
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// named is the client that a request claims to come from, for the trace; what is no client_id may be anything, even a secret.
func (s *Server) named(by oauth.Credentials) string {
	id, _ := oauth.ParseClientID(by.Client, s.settings.ClientID)
	return id.String()
}

// identify returns the client that presents a code or a refresh token (D11). A client that was approved with private_key_jwt has to authenticate
// with it (D33). For a public client nothing is fetched (C47).
func (s *Server) identify(ctx context.Context, of oauth.Authorization, by oauth.Credentials) (client string, err error) {
	owner, signs := of.Client(), of.AuthMethod() == oauth.PrivateKeyJWT
	switch {
	case by.Client != "" && by.Client != owner.String():
		return by.Client, nil // another client, which the grant then refuses (D13, D22, E4)
	case signs != (by.Assertion != ""):
		return "", oauth.RefuseClient(errors.New("the client authenticates in another way than it was approved with"))
	case !signs:
		return by.Client, nil
	}
	return owner.String(), s.prove(ctx, of, by.Assertion)
}

// prove refuses with InvalidClient what is not the client's own assertion, presented for the first time, and with
// TemporarilyUnavailable when the client's keys cannot be had. Only a valid assertion is used up.
func (s *Server) prove(ctx context.Context, of oauth.Authorization, text string) error {
	client, err := s.connectedClient(ctx, of.Client())
	if err != nil {
		return unproven(err)
	}
	assertion, err := s.ports.Assertions.ReadAssertion(text, func(key string) (oauth.Key, error) { return s.key(ctx, client, key) })
	if err != nil {
		return unproven(err)
	}
	if err := assertion.Check(client, s.settings, s.now()); err != nil {
		return err
	}
	s.keepClient(of)
	return unproven(s.ports.Store.UseOnce(ctx, assertion.Digest(), assertion.ForgetAfter()))
}

func (s *Server) key(ctx context.Context, client *oauth.ClientMetadata, id string) (oauth.Key, error) {
	keys, at := client.Keys()
	if at != (oauth.ClientID{}) {
		var err error
		if keys, err = s.ports.Keys.KeySet(ctx, at, id); err != nil {
			return nil, err
		}
	}
	key, found := keys.Key(id)
	if !found {
		return nil, oauth.ErrNotFound
	}
	return key, nil
}

// unproven blames the client for all but an outage, its own (D33) or that of the store (D30).
func unproven(err error) error {
	_, refused := oauth.KindOf(err)
	switch {
	case errors.Is(err, oauth.ErrMetadataUnreachable), errors.Is(err, oauth.ErrMetadataBudget):
		return oauth.RefuseFor(oauth.WaitOf(err), oauth.TemporarilyUnavailable, "D33", "The client's keys cannot be fetched just now", err)
	case refused, errors.Is(err, oauth.ErrMetadataMalformed), errors.Is(err, oauth.ErrBadAssertion),
		errors.Is(err, oauth.ErrNotFound), errors.Is(err, oauth.ErrDuplicate):
		return oauth.RefuseClient(err)
	}
	return err
}
