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

var errRefused = errors.New("the closure refuses")

// world is one store and a server whose clock stands still.
type world struct {
	store    oauth.Store
	settings *oauth.Settings
	now      time.Time
}

func newWorld(store oauth.Store) world {
	now := time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	settings, err := oauth.Config{
		Issuer: "https://site.example", VerifyBearer: func(string) bool { return true },
		Secret: make([]byte, oauth.MinSecretLength), Now: func() time.Time { return now }, Random: rand.Reader, RecheckEvery: time.Minute,
	}.Settings()
	Expect(err).NotTo(HaveOccurred())
	return world{store: store, settings: settings, now: now}
}

// ticket is a consent page that somebody has open.
func (w *world) ticket() *oauth.Ticket {
	client, err := oauth.NewClientMetadata(oauth.RestoreClientID(clientID), map[string]any{
		"client_id": clientID, "client_name": "A client", "redirect_uris": []any{redirect},
	}, w.settings.Metadata)
	Expect(err).NotTo(HaveOccurred())
	proof := sha256.Sum256([]byte(verifier))
	request, err := oauth.NewAuthorizationRequest(client, oauth.Parameters{
		"redirect_uri": {redirect}, "response_type": {"code"}, "scope": {"mcp " + oauth.OfflineAccess},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(proof[:])}, "code_challenge_method": {"S256"},
	}, w.settings)
	Expect(err).NotTo(HaveOccurred())
	ticket, err := oauth.NewTicket(request, rand.Reader, w.now)
	Expect(err).NotTo(HaveOccurred())
	return ticket
}

// issue builds a code; nothing is stored yet.
func (w *world) issue(ticket *oauth.Ticket, hostToken string) (*oauth.AuthorizationCode, oauth.Secret) {
	value := secret(oauth.CodeSecret)
	return w.issueAs(ticket, hostToken, value), value
}

// issueAs builds a code with this value.
func (w *world) issueAs(ticket *oauth.Ticket, hostToken string, value oauth.Secret) *oauth.AuthorizationCode {
	code, err := oauth.IssueCode(oauth.Approval{
		Ticket: ticket, Host: host(hostToken), Principal: oauth.Principal{Subject: "ada", Roles: []string{"editor"}}, Code: value, Chance: rand.Reader,
	}, w.settings, w.now)
	Expect(err).NotTo(HaveOccurred())
	return code
}

// issued stores a code that waits for its redemption.
func (w *world) issued(ctx context.Context) oauth.Secret {
	code, value := w.issue(w.ticket(), "host token")
	Expect(w.store.AddCode(ctx, code, never)).To(Succeed())
	return value
}

// active stores a code and redeems it.
func (w *world) active(ctx context.Context) (oauth.Secret, *oauth.Tokens) {
	return w.activeWith(ctx, "host token")
}

func (w *world) activeWith(ctx context.Context, hostToken string) (oauth.Secret, *oauth.Tokens) {
	code, value := w.issue(w.ticket(), hostToken)
	Expect(w.store.AddCode(ctx, code, never)).To(Succeed())
	tokens, err := w.redeem(ctx, value, func() {})
	Expect(err).NotTo(HaveOccurred())
	return value, tokens
}

// addGrant stores a grant as the result of a redemption.
func (w *world) addGrant(ctx context.Context, grant *oauth.AccessGrant) error {
	return w.store.RedeemCode(ctx, w.issued(ctx).Digest(), func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error) { return grant, nil })
}

func redemption(code oauth.Secret) oauth.Redemption {
	return oauth.Redemption{
		Client: clientID, Code: code, Verifier: verifier,
		Access: secret(oauth.AccessTokenSecret), Refresh: secret(oauth.RefreshTokenSecret),
	}
}

func (w *world) redeem(ctx context.Context, code oauth.Secret, inside func()) (tokens *oauth.Tokens, err error) {
	by := redemption(code)
	err = w.store.RedeemCode(ctx, code.Digest(), func(c *oauth.AuthorizationCode) (grant *oauth.AccessGrant, err error) {
		inside()
		grant, tokens, err = c.Redeem(by, w.settings, w.now)
		return grant, err
	})
	return tokens, err
}

func refreshment(token oauth.Secret) oauth.Refreshment {
	return oauth.Refreshment{
		Client: clientID, Token: token, Principal: oauth.Principal{Subject: "ada"},
		Access: secret(oauth.AccessTokenSecret), Successor: secret(oauth.RefreshTokenSecret),
	}
}

func (w *world) refresh(ctx context.Context, token oauth.Secret, inside func()) (tokens *oauth.Tokens, err error) {
	by := refreshment(token)
	err = w.store.UpdateGrant(ctx, token.Digest(), func(g *oauth.AccessGrant) (err error) {
		inside()
		tokens, err = g.Refresh(by, w.settings, w.now)
		return err
	})
	return tokens, err
}

// read returns what the store keeps of the grant that the secret belongs to.
func (w *world) read(ctx context.Context, secret oauth.Secret) oauth.GrantSnapshot {
	grant, err := w.store.Grant(ctx, secret.Digest())
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return kept(grant)
}

// code returns what the store keeps of a code.
func (w *world) code(ctx context.Context, value oauth.Secret) oauth.CodeSnapshot {
	code, err := w.store.Code(ctx, value.Digest())
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return code.Snapshot()
}

// held returns what the store keeps of the secret itself.
func (w *world) held(ctx context.Context, secret oauth.Secret) oauth.SecretSnapshot {
	grant, err := w.store.Grant(ctx, secret.Digest())
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	_, secrets := grant.Snapshot()
	ExpectWithOffset(1, secrets).To(HaveLen(1))
	return secrets[0]
}

func kept(grant *oauth.AccessGrant) oauth.GrantSnapshot {
	snapshot, _ := grant.Snapshot()
	return snapshot
}

// expectUnknown expects that the store knows neither a grant nor a code of these secrets.
func (w *world) expectUnknown(ctx context.Context, secrets ...oauth.Secret) {
	for _, secret := range secrets {
		_, err := w.store.Grant(ctx, secret.Digest())
		ExpectWithOffset(1, err).To(MatchError(oauth.ErrNotFound))
		_, err = w.store.Code(ctx, secret.Digest())
		ExpectWithOffset(1, err).To(MatchError(oauth.ErrNotFound))
	}
}

func (w *world) print(hostToken string) oauth.Fingerprint {
	print, err := w.settings.Keys.Fingerprint(host(hostToken))
	Expect(err).NotTo(HaveOccurred())
	return print
}

func host(token string) oauth.HostToken {
	parsed, err := oauth.ParseHostToken(token)
	Expect(err).NotTo(HaveOccurred())
	return parsed
}

func secret(kind oauth.SecretKind) oauth.Secret {
	drawn, err := oauth.NewSecret(kind, rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	return drawn
}

// bare builds a grant that has only what a store looks at.
func bare(id string, tokens ...oauth.Secret) *oauth.AccessGrant {
	rows := make([]oauth.SecretSnapshot, 0, len(tokens))
	for _, token := range tokens {
		digest := token.Digest()
		rows = append(rows, oauth.SecretSnapshot{Digest: digest[:], Grant: id, Kind: string(oauth.AccessTokenSecret)})
	}
	return oauth.RestoreGrant(oauth.GrantSnapshot{ID: id}, rows...)
}

// bareCode builds a code that has only what a store looks at.
func bareCode(id string, value oauth.Secret) *oauth.AuthorizationCode {
	digest := value.Digest()
	return oauth.RestoreCode(oauth.CodeSnapshot{ID: id, Digest: digest[:], State: "issued"})
}

func never(*oauth.AuthorizationCode) error {
	return errors.New("there is no earlier code to ask about")
}

func agree(*oauth.AuthorizationCode) error { return nil }
