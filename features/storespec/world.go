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

// approve builds a pending grant; nothing is stored yet.
func (w *world) approve(ticket *oauth.Ticket, hostToken string) (*oauth.AccessGrant, oauth.Secret) {
	code := secret(oauth.CodeSecret)
	return w.approveAs(ticket, hostToken, code), code
}

// approveAs builds one with this code.
func (w *world) approveAs(ticket *oauth.Ticket, hostToken string, code oauth.Secret) *oauth.AccessGrant {
	grant, err := oauth.Approve(oauth.Approval{
		Ticket: ticket, Host: host(hostToken), Principal: oauth.Principal{Subject: "ada", Roles: []string{"editor"}}, Code: code, Chance: rand.Reader,
	}, w.settings, w.now)
	Expect(err).NotTo(HaveOccurred())
	return grant
}

// pending stores a grant whose code waits for its redemption.
func (w *world) pending(ctx context.Context) oauth.Secret {
	grant, code := w.approve(w.ticket(), "host token")
	Expect(w.store.AddGrant(ctx, grant, grant.Supersedes)).To(Succeed())
	return code
}

// active stores a grant and redeems its code.
func (w *world) active(ctx context.Context) (oauth.Secret, *oauth.Tokens) {
	return w.activeWith(ctx, "host token")
}

func (w *world) activeWith(ctx context.Context, hostToken string) (oauth.Secret, *oauth.Tokens) {
	grant, code := w.approve(w.ticket(), hostToken)
	Expect(w.store.AddGrant(ctx, grant, grant.Supersedes)).To(Succeed())
	tokens, err := w.redeem(ctx, code, func() {})
	Expect(err).NotTo(HaveOccurred())
	return code, tokens
}

func redemption(code oauth.Secret) oauth.Redemption {
	return oauth.Redemption{
		Client: clientID, Code: code, Verifier: verifier,
		Access: secret(oauth.AccessTokenSecret), Refresh: secret(oauth.RefreshTokenSecret),
	}
}

func (w *world) redeem(ctx context.Context, code oauth.Secret, inside func()) (tokens *oauth.Tokens, err error) {
	by := redemption(code)
	err = w.store.UpdateGrant(ctx, code.Digest(), func(g *oauth.AccessGrant) (err error) {
		inside()
		tokens, err = g.Redeem(by, w.settings, w.now)
		return err
	})
	return tokens, err
}

func (w *world) refresh(ctx context.Context, token oauth.Secret, inside func()) (tokens *oauth.Tokens, err error) {
	by := oauth.Refreshment{
		Client: clientID, Token: token, Principal: oauth.Principal{Subject: "ada"},
		Access: secret(oauth.AccessTokenSecret), Successor: secret(oauth.RefreshTokenSecret),
	}
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

func (w *world) expectUnknown(ctx context.Context, secrets ...oauth.Secret) {
	for _, secret := range secrets {
		_, err := w.store.Grant(ctx, secret.Digest())
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
func bare(id string, secrets ...oauth.Secret) *oauth.AccessGrant {
	rows := make([]oauth.SecretSnapshot, 0, len(secrets))
	for _, secret := range secrets {
		digest := secret.Digest()
		rows = append(rows, oauth.SecretSnapshot{Digest: digest[:], Grant: id, Kind: string(oauth.CodeSecret)})
	}
	return oauth.RestoreGrant(oauth.GrantSnapshot{ID: id}, rows...)
}

func never(*oauth.AccessGrant) error { return errors.New("there is no earlier grant to ask about") }
