package storespec

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	clientID = "https://client.example/metadata.json"
	redirect = "https://client.example/callback"
	verifier = "a-verifier-of-at-least-forty-three-characters"
)

var errRefused = errors.New("refused by the closure")

// world is a store with the settings of a server. Its clock is now, which changes only when a spec
// sets it.
type world struct {
	store    Acts
	settings *oauth.Settings
	now      time.Time
}

func newWorld(store oauth.Store) world {
	now := time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	settings, err := oauth.Config{
		Issuer:       "https://site.example",
		VerifyBearer: func(string) bool { return true },
		Secret:       make([]byte, oauth.MinSecretLength),
		Now:          func() time.Time { return now },
		Random:       rand.Reader,
		RecheckEvery: time.Minute,
	}.Settings()
	Expect(err).NotTo(HaveOccurred())
	return world{store: On(store), settings: settings, now: now}
}

// ticket returns the ticket of an open consent page.
func (w *world) ticket() *oauth.Ticket {
	client := oauth.Client{
		ID:         oauth.RestoreClientID(clientID),
		Name:       "A client",
		AuthMethod: oauth.PublicClient,
		DeclaresID: true,
		MayRefresh: true,
	}
	proof := sha256.Sum256([]byte(verifier))
	request, err := oauth.NewAuthorizationRequest(client, oauth.RestoreRedirectURI(redirect), oauth.Parameters{
		"response_type":         {"code"},
		"scope":                 {"mcp " + oauth.OfflineAccess},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(proof[:])},
		"code_challenge_method": {"S256"},
	}, w.settings)
	Expect(err).NotTo(HaveOccurred())
	ticket, err := oauth.NewTicket(request, rand.Reader, w.now)
	Expect(err).NotTo(HaveOccurred())
	return ticket
}

// issue builds a code without storing it.
func (w *world) issue(ticket *oauth.Ticket, hostToken string) (*oauth.AuthorizationCode, oauth.Secret) {
	value := w.secret(oauth.CodeSecret, ticket.ID())
	return w.issueAs(ticket, hostToken, value), value
}

// issueAs builds a code with this value.
func (w *world) issueAs(ticket *oauth.Ticket, hostToken string, value oauth.Secret) *oauth.AuthorizationCode {
	code, err := oauth.IssueCode(oauth.Approval{
		Ticket:    ticket,
		Host:      host(hostToken),
		Principal: oauth.Principal{Subject: "ada", Roles: []string{"editor"}},
		Code:      value,
		Random:    rand.Reader,
	}, w.settings, w.now)
	Expect(err).NotTo(HaveOccurred())
	return code
}

// issued stores a code that is not redeemed.
func (w *world) issued(ctx context.Context) oauth.Secret {
	code, value := w.issue(w.ticket(), "host token")
	Expect(w.store.AddCode(ctx, code, noEarlierCode)).To(Succeed())
	return value
}

// active stores a code and redeems it.
func (w *world) active(ctx context.Context) (oauth.Secret, *oauth.Tokens) {
	return w.activeWith(ctx, "host token")
}

func (w *world) activeWith(ctx context.Context, hostToken string) (oauth.Secret, *oauth.Tokens) {
	code, value := w.issue(w.ticket(), hostToken)
	Expect(w.store.AddCode(ctx, code, noEarlierCode)).To(Succeed())
	tokens, err := w.redeem(ctx, value, func() {})
	Expect(err).NotTo(HaveOccurred())
	return value, tokens
}

// addGrant stores a grant by redeeming a new code.
func (w *world) addGrant(ctx context.Context, grant *oauth.AccessGrant) error {
	Expect(w.store.AddCode(ctx, minimalCode(grant.ID()), noEarlierCode)).To(Succeed())
	toGrant := func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error) { return grant, nil }
	return w.store.RedeemCode(ctx, grant.ID(), toGrant)
}

func redemption(code oauth.Secret) oauth.Redemption {
	return oauth.Redemption{
		Client:   clientID,
		Code:     code,
		Verifier: verifier,
		Fresh:    fresh(),
	}
}

func (w *world) redeem(ctx context.Context, code oauth.Secret, inside func()) (tokens *oauth.Tokens, err error) {
	by := redemption(code)
	known := code.Grant()
	err = w.store.RedeemCode(ctx, known, func(c *oauth.AuthorizationCode) (grant *oauth.AccessGrant, err error) {
		inside()
		grant, tokens, err = c.Redeem(by, w.settings, w.now)
		return grant, err
	})
	return tokens, err
}

func refreshment(token oauth.Secret) oauth.RefreshRequest {
	return oauth.RefreshRequest{
		Client:    clientID,
		Token:     token,
		Principal: oauth.Principal{Subject: "ada"},
		Fresh:     fresh(),
	}
}

func (w *world) refresh(ctx context.Context, token oauth.Secret, inside func()) (tokens *oauth.Tokens, err error) {
	by := refreshment(token)
	err = w.store.UpdateGrant(ctx, token.Grant(), func(g *oauth.AccessGrant) (err error) {
		inside()
		tokens, err = g.Refresh(by, w.settings, w.now)
		return err
	})
	return tokens, err
}

// grant returns the stored grant that the token belongs to.
func (w *world) grant(ctx context.Context, secret oauth.Secret) oauth.GrantSnapshot {
	grant, err := w.store.Grant(ctx, secret.Grant())
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return grantWithoutVersion(grant)
}

// code returns a stored code.
func (w *world) code(ctx context.Context, value oauth.Secret) oauth.CodeSnapshot {
	code, err := w.store.Code(ctx, value.Grant())
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return withoutVersion(code)
}

// expectUnknown expects that the store has neither a grant nor a code with the id.
func (w *world) expectUnknown(ctx context.Context, id string) {
	_, err := w.store.Grant(ctx, id)
	ExpectWithOffset(1, err).To(MatchError(oauth.ErrNotFound))
	_, err = w.store.Code(ctx, id)
	ExpectWithOffset(1, err).To(MatchError(oauth.ErrNotFound))
}

func (w *world) fingerprint(hostToken string) oauth.Fingerprint {
	print, err := w.settings.Keys.Fingerprint(host(hostToken))
	Expect(err).NotTo(HaveOccurred())
	return print
}

func host(token string) oauth.HostToken {
	parsed, err := oauth.ParseHostToken(token)
	Expect(err).NotTo(HaveOccurred())
	return parsed
}

func (w *world) secret(kind oauth.SecretKind, grant string) oauth.Secret {
	secret, err := oauth.NewSecret(kind, grant, 0, entropy(), w.settings.Keys)
	Expect(err).NotTo(HaveOccurred())
	return secret
}

func fresh() oauth.FreshEntropy { return oauth.FreshEntropy{Access: entropy(), Refresh: entropy()} }

func entropy() oauth.Entropy {
	drawn, err := oauth.NewEntropy(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	return drawn
}

// minimalGrant builds a grant with only the fields that a store uses itself.
func minimalGrant(id string) *oauth.AccessGrant {
	return oauth.RestoreGrant(oauth.GrantSnapshot{ConsentSnapshot: oauth.ConsentSnapshot{ID: id, State: "active"}})
}

// minimalCode builds a code with only the fields that a store uses itself.
func minimalCode(id string) *oauth.AuthorizationCode {
	return oauth.RestoreCode(oauth.CodeSnapshot{ConsentSnapshot: oauth.ConsentSnapshot{ID: id, State: "issued"}})
}

func noEarlierCode(*oauth.AuthorizationCode) error {
	return errors.New("supersede was called although there is no earlier code")
}

func replace(*oauth.AuthorizationCode) error { return nil }
