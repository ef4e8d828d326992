package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

// client returns the client of an authorization request. One that registered itself or that this
// server hosts is never fetched.
func (s *Server) client(ctx context.Context, id oauth.ClientID, redirectURI string) (*oauth.ClientMetadata, error) {
	if err := s.settings.CheckClient(id); err != nil {
		return nil, err
	}
	attempt.From(ctx).Record(attempt.ClientMetadata)
	if s.settings.IsSelfRegistered(id) {
		return s.settings.OpenClient(id)
	}
	if hosted := s.settings.Hosted(id); hosted != nil {
		return hosted, nil
	}
	client, err := s.ports.Clients.Client(ctx, id, redirectURI)
	if err != nil {
		s.audit(ctx, "cimd_rejected", "client", s.settings.PublisherOf(id), "reason", err)
		return nil, clientRefusal(err)
	}
	if checkedAt, failure := client.FailedCheck(); failure != nil { // the last good document is used
		s.audit(ctx, "cimd_unchecked", "client", id.Host(), "checked_at", checkedAt, "reason", failure)
		attempt.From(ctx).Explain(oauth.Refuse(oauth.ClientUnreachable, "C57", "the app's description cannot be "+
			"fetched; its version of "+checkedAt.UTC().Format(time.DateTime)+" UTC is used", failure))
	}
	return client, nil
}

const notFetched = "the app's published description cannot be fetched"

// clientRefusal has one text for every failed fetch, so that the page does not reveal which
// internal hosts exist. Only the log and the trace name the rule.
func clientRefusal(err error) error {
	switch {
	case errors.Is(err, oauth.ErrMetadataNoDocument):
		return oauth.Refuse(oauth.ClientUnreachable, "C42", notFetched, err)
	case errors.Is(err, oauth.ErrMetadataUnreachable):
		return oauth.Refuse(oauth.ClientUnreachable, "C41", notFetched, err)
	case errors.Is(err, oauth.ErrMetadataMalformed):
		return oauth.Refuse(oauth.InvalidClientDocument, "C43", "the app's published description is not valid", err)
	case errors.Is(err, oauth.ErrMetadataBudget):
		return oauth.RefuseFor(oauth.WaitOf(err), oauth.ClientBusy, "C21",
			"too many apps are being looked up just now", err)
	}
	return err
}

// AdmitRegistration refuses with TooManyRegistrations beyond the limits, before the request is
// read.
func (s *Server) AdmitRegistration(ctx context.Context) error {
	wait := s.ports.Rates.Take(s.now(), oauth.RequesterFrom(ctx).Registration()...)
	if wait == 0 {
		return nil
	}
	s.ports.Limited.Observe(oauth.LimitRegistrations, oauth.LimitRefused)
	return oauth.RefuseFor(wait, oauth.TooManyRegistrations, "L10", "Too many apps are registering just now")
}

// Registration is a client that registered itself, and when.
type Registration struct {
	Client *oauth.ClientMetadata
	Secret oauth.ClientSecret // none for a public client
	At     time.Time
}

// Register registers the client that the members of a request describe. It stores nothing, not even
// a step in the trace.
func (s *Server) Register(ctx context.Context, members map[string]any) (Registration, error) {
	client, err := s.settings.RegisterClient(members)
	if err != nil {
		return Registration{}, err
	}
	secret, err := s.settings.ClientSecret(client)
	if err != nil {
		return Registration{}, err
	}
	s.audit(ctx, "client_registered", "client", s.settings.LabelOfID(client.ID()))
	return Registration{Client: client, Secret: secret, At: s.now()}, nil
}

// admitClient returns the label of the client of a request for the trace, "" when its client_id is
// not valid: it may then be anything, even a secret. It refuses with InvalidClient, so that the
// client registers again, when it has lost its registration or when no client can have the
// client_id here, such as one of an earlier server; and when its secret is wrong or missing.
func (s *Server) admitClient(by oauth.Credentials) (label string, err error) {
	if by.Client == "" {
		return "", oauth.RefuseUnknownSecret(by.Secret)
	}
	id, err := oauth.ParseClientID(by.Client, s.settings.ClientID)
	label = s.settings.LabelOf(id, "")
	if err == nil && !s.settings.IsSelfRegistered(id) {
		return label, oauth.RefuseUnknownSecret(by.Secret)
	}
	var client *oauth.ClientMetadata
	if err == nil {
		client, err = s.settings.OpenClient(id)
	}
	if kind, _ := oauth.KindOf(err); kind == oauth.LostRegistration || kind == oauth.MalformedClientID {
		err = oauth.Refuse(oauth.InvalidClient, "L8", "The client has to register again", err)
	}
	if err != nil {
		return label, err
	}
	return s.settings.LabelOf(id, client.Name()), s.settings.CheckClientSecret(client, by.Secret)
}

// keepClient stores the document of a client that a person has just approved.
func (s *Server) keepClient(ctx context.Context, id oauth.ClientID) {
	if keeper, keeps := s.ports.Clients.(oauth.ClientKeeper); keeps && !s.settings.IsPublishedHere(id) {
		keeper.Keep(ctx, id)
	}
}

// connectedClient returns the document of a client that has a grant.
func (s *Server) connectedClient(ctx context.Context, id oauth.ClientID) (*oauth.ClientMetadata, error) {
	if hosted := s.settings.Hosted(id); hosted != nil {
		return hosted, nil
	}
	if keeper, keeps := s.ports.Clients.(oauth.ClientKeeper); keeps {
		return keeper.Connected(ctx, id)
	}
	return s.ports.Clients.Client(ctx, id, "")
}

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
	assertion, err := s.ports.Assertions.ReadAssertion(text, func(by oauth.KeyReference) (key oauth.Key, err error) {
		keys, at := client.Keys()
		if at != (oauth.ClientID{}) {
			keys, err = s.ports.Keys.KeySet(ctx, at, by)
		}
		key, found := keys.Key(by)
		if err == nil && !found {
			err = fmt.Errorf("%w: no key, or more than one, for kid %.100q and alg %s", oauth.ErrNotFound,
				by.ID, by.Algorithm)
		}
		return key, err
	})
	if err != nil {
		return assertionRefusal(err)
	}
	if err := assertion.Check(client, s.settings, s.now()); err != nil {
		return err
	}
	return assertionRefusal(s.store.UseOnce(ctx, assertion.Digest(), assertion.ForgetAfter()))
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
