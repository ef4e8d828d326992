package application

import (
	"context"
	"errors"
	"fmt"

	"github.com/pasteport/pasteport/domain/oauth"
)

// identify returns the client that presents a code or a refresh token. A client that publishes keys
// and does not list "none" has to authenticate with private_key_jwt, and one that lists both keeps
// what it used first. The keys of a client without an assertion are not fetched. A secret belongs
// to a client_id and was checked with it.
func (s *Server) identify(ctx context.Context, of oauth.Authorization, by oauth.Credentials) (client string,
	err error) {
	owner, signed := of.Client(), by.Assertion != ""
	switch {
	case by.Client != "" && by.Client != owner.String():
		return by.Client, nil // the grant refuses another client
	case !of.AuthMethod().Allows(signed), of.AuthMethod().HasSecret() && by.Client == "":
		return "", oauth.RefuseClient(errors.New("the client authenticates in another way than it was approved with"))
	case !signed:
		return by.Client, nil
	}
	return owner.String(), s.checkAssertion(ctx, of, by.Assertion)
}

// checkAssertion refuses with InvalidClient unless the assertion is the client's and is presented
// for the first time, and with TemporarilyUnavailable when the client's keys cannot be fetched.
// Only a valid assertion is stored as used.
func (s *Server) checkAssertion(ctx context.Context, of oauth.Authorization, text string) error {
	client, err := s.connectedClient(ctx, of.Client())
	if err != nil {
		return assertionRefusal(err)
	}
	assertion, err := s.ports.Assertions.ReadAssertion(text, func(by oauth.KeyReference) (oauth.Key, error) {
		return s.key(ctx, client, by)
	})
	if err != nil {
		return assertionRefusal(err)
	}
	if err := assertion.Check(client, s.settings, s.now()); err != nil {
		return err
	}
	return assertionRefusal(s.store.UseOnce(ctx, assertion.Digest(), assertion.ForgetAfter()))
}

func (s *Server) key(ctx context.Context, client *oauth.ClientMetadata, by oauth.KeyReference) (oauth.Key, error) {
	keys, at := client.Keys()
	if at != (oauth.ClientID{}) {
		var err error
		if keys, err = s.ports.Keys.KeySet(ctx, at, by); err != nil {
			return nil, err
		}
	}
	key, found := keys.Key(by)
	if !found {
		return nil, fmt.Errorf("%w: no key, or more than one, for kid %.100q and alg %s", oauth.ErrNotFound, by.ID,
			by.Algorithm)
	}
	return key, nil
}

// assertionRefusal refuses with InvalidClient, except for an outage of the key set or of the store.
func assertionRefusal(err error) error {
	_, refused := oauth.KindOf(err)
	switch {
	case errors.Is(err, oauth.ErrMetadataUnreachable), errors.Is(err, oauth.ErrMetadataBudget):
		return oauth.RefuseFor(oauth.WaitOf(err), oauth.TemporarilyUnavailable, "D33",
			"The client's keys cannot be fetched just now", err)
	case refused, errors.Is(err, oauth.ErrMetadataMalformed), errors.Is(err, oauth.ErrBadAssertion),
		errors.Is(err, oauth.ErrNotFound), errors.Is(err, oauth.ErrDuplicate):
		return oauth.RefuseClient(err)
	}
	return err
}
