package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/quota"
)

// client returns the client of an authorization request. One that registered itself or that this
// server hosts is never fetched.
func (s *core) client(ctx context.Context, id oauth.ClientID, redirectURI string) (*client.Metadata, error) {
	if err := s.Clients.CheckAllowed(id); err != nil {
		return nil, err
	}
	attempt.From(ctx).Record(attempt.ClientMetadata)
	if s.Clients.IsSelfRegistered(id) {
		return s.Clients.Open(id)
	}
	if hosted := s.Clients.Hosted(id); hosted != nil {
		return hosted, nil
	}
	found, err := s.ports.Clients.Client(ctx, id, redirectURI)
	if err != nil {
		s.audit(ctx, "cimd_rejected", "client", s.Clients.PublisherOf(id), "reason", err)
		return nil, clientRefusal(err)
	}
	if failure := found.CheckFailure; failure != nil { // the last good document is used
		s.audit(ctx, "cimd_unchecked", "client", id.Host(), "checked_at", found.CheckedAt, "reason", failure)
		attempt.From(ctx).Explain(oauth.Refuse(oauth.ClientUnreachable, "C57", "the app's description cannot be "+
			"fetched; its version of "+found.CheckedAt.UTC().Format(time.DateTime)+" UTC is used", failure))
	}
	return found, nil
}

const notFetched = "the app's published description cannot be fetched"

// clientRefusal has one text for every failed fetch, so that the page does not reveal which
// internal hosts exist. Only the log and the trace name the rule.
func clientRefusal(err error) error {
	switch {
	case errors.Is(err, client.ErrNoDocument):
		return oauth.Refuse(oauth.ClientUnreachable, "C42", notFetched, err)
	case errors.Is(err, client.ErrUnreachable):
		return oauth.Refuse(oauth.ClientUnreachable, "C41", notFetched, err)
	case errors.Is(err, client.ErrMalformed):
		return oauth.Refuse(oauth.InvalidClientDocument, "C43", "the app's published description is not valid", err)
	case errors.Is(err, client.ErrBudget):
		return oauth.RefuseFor(client.WaitOf(err), oauth.ClientBusy, "C21",
			"too many apps are being looked up just now", err)
	}
	return err
}

// AdmitRegistration refuses with TooManyRegistrations beyond the limits. Call it before Register.
func (s Authorize) AdmitRegistration(ctx context.Context) error {
	wait := s.ports.Rates.Take(s.now(), quota.RequesterFrom(ctx).Registration()...)
	if wait == 0 {
		return nil
	}
	s.ports.Limited.Observe(quota.Registrations, quota.Refused)
	return oauth.RefuseFor(wait, oauth.TooManyRegistrations, "L10", "Too many apps are registering just now")
}

// Registration is a client that registered itself, and when.
type Registration struct {
	Client *client.Metadata
	Secret oauth.ClientSecret // none for a public client
	At     time.Time
}

// Register registers the client that the members of a request describe. It stores nothing, not even
// a step in the trace.
func (s Authorize) Register(ctx context.Context, members map[string]any) (Registration, error) {
	registered, err := s.Clients.Register(members)
	if err != nil {
		return Registration{}, err
	}
	secret, err := s.Clients.Secret(registered)
	if err != nil {
		return Registration{}, err
	}
	s.audit(ctx, "client_registered", "client", s.Clients.LabelOf(registered.ID, registered.Name))
	return Registration{Client: registered, Secret: secret, At: s.now()}, nil
}

// admitClient checks the client_id and the secret of a request. It refuses with InvalidClient a
// wrong or missing secret, a lost registration, and a client_id that no client can have here, such
// as one of an earlier server; the client then registers again. It returns the client's label for
// the trace, "" for a client_id that is not valid, because that may be anything, even a secret.
func (s *core) admitClient(by client.Credentials) (label string, err error) {
	if by.Client == "" {
		return "", client.RefuseUnknownSecret(by.Secret)
	}
	id, err := s.Clients.ParseID(by.Client)
	label = s.Clients.LabelOf(id, "")
	if err == nil && !s.Clients.IsSelfRegistered(id) {
		return label, client.RefuseUnknownSecret(by.Secret)
	}
	var registered *client.Metadata
	if err == nil {
		registered, err = s.Clients.Open(id)
	}
	if kind, _ := oauth.KindOf(err); kind == oauth.LostRegistration || kind == oauth.MalformedClientID {
		err = oauth.Refuse(oauth.InvalidClient, "L8", "The client has to register again", err)
	}
	if err != nil {
		return label, err
	}
	return s.Clients.LabelOf(id, registered.Name), s.Clients.CheckSecret(registered, by.Secret)
}

// keepClient stores the document of a client that a person has just approved.
func (s *core) keepClient(ctx context.Context, id oauth.ClientID) {
	if keeper, keeps := s.ports.Clients.(client.Keeper); keeps && !s.Clients.IsPublishedHere(id) {
		keeper.Keep(ctx, id)
	}
}

// connectedClient returns the document of a client that has a grant.
func (s *core) connectedClient(ctx context.Context, id oauth.ClientID) (*client.Metadata, error) {
	if hosted := s.Clients.Hosted(id); hosted != nil {
		return hosted, nil
	}
	if keeper, keeps := s.ports.Clients.(client.Keeper); keeps {
		return keeper.Connected(ctx, id)
	}
	return s.ports.Clients.Client(ctx, id, "")
}

// identify returns the id of the client that presents a code or a refresh token, "" if the request
// names none, and checks the way in which it authenticates. admitClient has checked its secret.
func (s *core) identify(ctx context.Context, of oauth.Authorization, by client.Credentials) (id string,
	err error) {
	owner, signed := of.Client(), by.Assertion != ""
	switch {
	case by.Client != "" && by.Client != owner.ID.String():
		return by.Client, nil // the code or grant refuses another client
	case !owner.AuthMethod.Allows(signed), owner.AuthMethod.HasSecret() && by.Client == "":
		return "", oauth.RefuseClient(errors.New("the client authenticates in another way than it was approved with"))
	case !signed:
		return by.Client, nil
	}
	return owner.ID.String(), s.checkAssertion(ctx, of, by.Assertion)
}

// checkAssertion refuses with InvalidClient an assertion that is not the client's or was used
// before, and with TemporarilyUnavailable when the client's keys cannot be fetched.
func (s *core) checkAssertion(ctx context.Context, of oauth.Authorization, text string) error {
	signer, err := s.connectedClient(ctx, of.Client().ID)
	if err != nil {
		return assertionRefusal(err)
	}
	assertion, err := s.ports.Assertions.ReadAssertion(text, func(by client.KeyReference) (key client.Key, err error) {
		keys := signer.Keys
		if signer.KeysAt != (oauth.ClientID{}) {
			keys, err = s.ports.Keys.KeySet(ctx, signer.KeysAt, by)
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
	if err := s.Clients.CheckAssertion(assertion, signer, s.now()); err != nil {
		return err
	}
	return assertionRefusal(s.store.UseOnce(ctx, assertion.Digest(), assertion.ForgetAfter()))
}

// assertionRefusal refuses with InvalidClient, except for an outage of the key set or of the store.
func assertionRefusal(err error) error {
	_, refused := oauth.KindOf(err)
	switch {
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, client.ErrBudget):
		return oauth.RefuseFor(client.WaitOf(err), oauth.TemporarilyUnavailable, "D33",
			"The client's keys cannot be fetched just now", err)
	case refused, errors.Is(err, client.ErrMalformed), errors.Is(err, client.ErrBadAssertion),
		errors.Is(err, oauth.ErrNotFound), errors.Is(err, oauth.ErrDuplicate):
		return oauth.RefuseClient(err)
	}
	return err
}
