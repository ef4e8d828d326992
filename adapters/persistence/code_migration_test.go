package persistence

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// grantWithCode is a row of the grants before migration 0010.
type grantWithCode struct {
	Grant         grantRow `gorm:"embedded"`
	CodeDigest    []byte
	CodeChallenge string
	CodeExpiresAt time.Time `gorm:"serializer:pasteport_millis"`
	RedeemedAt    time.Time `gorm:"serializer:pasteport_millis"`
}

// TableName implements GORM's Tabler.
func (grantWithCode) TableName() string { return "grants" }

const pkceVerifier = "a-verifier-of-at-least-forty-three-characters"

// formerDatabase is a database before migration 0010, with what its server issued.
type formerDatabase struct {
	store    *Store
	settings *oauth.Settings
}

func newFormerDatabase(ctx context.Context, store *Store) *formerDatabase {
	GinkgoHelper()
	Expect(store.transaction(ctx, func(tx *gorm.DB) error {
		_, err := migrate(tx, store.engine, migrations[:9])
		return err
	})).To(Succeed())
	settings, err := oauth.Config{
		Issuer: "https://site.example", VerifyBearer: func(string) bool { return true }, Secret: make([]byte, oauth.MinSecretLength), Now: time.Now, Random: rand.Reader,
	}.Settings()
	Expect(err).NotTo(HaveOccurred())
	return &formerDatabase{store, settings}
}

// issue returns a code that is not stored yet.
func (f *formerDatabase) issue(at time.Time) (*oauth.AuthorizationCode, oauth.Redemption) {
	GinkgoHelper()
	const client, redirect = "https://client.example/c", "https://client.example/callback"
	metadata, err := oauth.NewClientMetadata(oauth.RestoreClientID(client), map[string]any{
		"client_id": client, "client_name": "A client", "redirect_uris": []any{redirect},
	}, f.settings.Metadata)
	Expect(err).NotTo(HaveOccurred())
	proof := sha256.Sum256([]byte(pkceVerifier))
	request, err := oauth.NewAuthorizationRequest(metadata, oauth.Parameters{
		"redirect_uri": {redirect}, "response_type": {"code"}, "scope": {"mcp " + oauth.OfflineAccess},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(proof[:])}, "code_challenge_method": {"S256"},
	}, f.settings)
	Expect(err).NotTo(HaveOccurred())
	ticket, err := oauth.NewTicket(request, rand.Reader, at)
	Expect(err).NotTo(HaveOccurred())
	host, err := oauth.ParseHostToken("host token")
	Expect(err).NotTo(HaveOccurred())
	by := oauth.Redemption{Client: client, Verifier: pkceVerifier, Code: newSecret(oauth.CodeSecret), Access: newSecret(oauth.AccessTokenSecret), Refresh: newSecret(oauth.RefreshTokenSecret)}
	code, err := oauth.IssueCode(oauth.Approval{Ticket: ticket, Host: host, Principal: oauth.Principal{Subject: "ada"}, Code: by.Code, Random: rand.Reader}, f.settings, at)
	Expect(err).NotTo(HaveOccurred())
	return code, by
}

// keepCode stores a code that was not redeemed, as a grant in the given state.
func (f *formerDatabase) keepCode(code *oauth.AuthorizationCode, state string) {
	GinkgoHelper()
	c := code.Snapshot()
	row := grantWithCode{
		Grant: grantRow{
			ID: c.ID, ClientID: c.ClientID, ClientName: c.ClientName, AuthMethod: c.AuthMethod, RedirectURI: c.RedirectURI, Resource: c.Resource, Scopes: c.Scopes,
			Subject: c.Subject, Roles: c.Roles, State: state, EndReason: c.EndReason, CreatedAt: c.CreatedAt, EndedAt: c.WithdrawnAt, VerifiedAt: c.CreatedAt,
			IdleEnd: c.ExpiresAt, AbsoluteEnd: c.CreatedAt.AddDate(0, 6, 0), ForgetAfter: c.ForgetAfter, HostPrint: c.HostPrint, HostBox: c.HostBox, HostWrap: c.HostWrap,
		},
		CodeDigest: c.Digest, CodeChallenge: c.CodeChallenge, CodeExpiresAt: c.ExpiresAt,
	}
	f.create(row, &secretRow{Digest: c.Digest, Grant: c.ID, Kind: "ppc_", ForgetAfter: c.CreatedAt.Add(24 * time.Hour)})
}

// keepGrant stores the grant of a code that was redeemed.
func (f *formerDatabase) keepGrant(code *oauth.AuthorizationCode, grant *oauth.AccessGrant) {
	GinkgoHelper()
	c := code.Snapshot()
	row, secrets := rowsOf(grant)
	f.create(grantWithCode{Grant: row, CodeDigest: c.Digest, CodeChallenge: c.CodeChallenge, CodeExpiresAt: c.ExpiresAt, RedeemedAt: c.RedeemedAt},
		append(secrets, &secretRow{Digest: c.Digest, Grant: c.ID, Kind: "ppc_", ForgetAfter: c.CreatedAt.Add(24 * time.Hour)})...)
}

func (f *formerDatabase) create(row grantWithCode, secrets ...*secretRow) {
	GinkgoHelper()
	Expect(f.store.writer.Create(&row).Error).To(Succeed())
	Expect(f.store.writer.Create(&secrets).Error).To(Succeed())
}

func newSecret(kind oauth.SecretKind) oauth.Secret {
	GinkgoHelper()
	secret, err := oauth.NewSecret(kind, rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	return secret
}

var _ = Describe("A database in which codes were part of the grants", Label("H7", "I2", "D19"), func() {
	itKeepsWhatItHolds := func(former, now func(context.Context) *Store) {
		var old *formerDatabase
		BeforeEach(func(ctx SpecContext) { old = newFormerDatabase(ctx, former(ctx)) })

		It("keeps codes that wait for their clients", func(ctx SpecContext) {
			code, by := old.issue(then)
			old.keepCode(code, "pending")
			store := now(ctx)
			found, err := store.Code(ctx, by.Code.Digest())
			Expect(err).NotTo(HaveOccurred())
			Expect(found.Snapshot()).To(Equal(code.Snapshot()))
			Expect(store.RedeemCode(ctx, by.Code.Digest(), func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
				grant, _, err := c.Redeem(by, old.settings, then)
				return grant, err
			})).To(Succeed())
			grant, err := store.Grant(ctx, by.Refresh.Digest())
			Expect(err).NotTo(HaveOccurred())
			Expect(grant.UnsealWithRefreshToken(by.Refresh, old.settings)).To(HaveField("Reveal()", "host token"))
			Expect(store.AuthorizationsOf(ctx, code.HostPrint())).To(And(HaveField("Codes", BeEmpty()), HaveField("Grants", HaveLen(1))))
		})

		It("keeps grants, and detects the replay of their codes", func(ctx SpecContext) {
			code, by := old.issue(then)
			wanted, tokens, err := code.Redeem(by, old.settings, then)
			Expect(err).NotTo(HaveOccurred())
			old.keepGrant(code, wanted)
			early, byEarly := old.issue(then.AddDate(0, 0, -2))
			month, _, err := early.Redeem(byEarly, old.settings, then.AddDate(0, 0, -2))
			Expect(err).NotTo(HaveOccurred())
			old.keepGrant(early, month)

			store := now(ctx)
			grant, err := store.Grant(ctx, tokens.Access.Digest())
			Expect(err).NotTo(HaveOccurred())
			Expect(grant.Admits(tokens.Access.Digest(), old.settings.Resource(), then)).To(HaveField("Subject", "ada"))
			next := oauth.RefreshRequest{Client: by.Client, Token: by.Refresh, Principal: oauth.Principal{Subject: "ada"}, Access: newSecret(oauth.AccessTokenSecret), Successor: newSecret(oauth.RefreshTokenSecret)}
			Expect(store.UpdateGrant(ctx, by.Refresh.Digest(), func(g *oauth.AccessGrant) error { _, err := g.Refresh(next, old.settings, then); return err })).To(Succeed())
			spent, err := store.Code(ctx, by.Code.Digest())
			Expect(err).NotTo(HaveOccurred())
			Expect(spent.Snapshot()).To(Equal(code.Snapshot()))
			Expect(spent.MayRedeem(by, old.settings, then.Add(time.Minute))).To(MatchError(oauth.ErrReplayed))
			_, err = store.Grant(ctx, byEarly.Refresh.Digest())
			Expect(err).NotTo(HaveOccurred())
			_, err = store.Code(ctx, byEarly.Code.Digest())
			Expect(err).To(MatchError(oauth.ErrNotFound), "its replay was not detected any more before either")
		})

		It("keeps withdrawn codes and ended grants as they were", func(ctx SpecContext) {
			code, by := old.issue(then)
			code.End(oauth.EndedByHost, then)
			old.keepCode(code, "ended")
			other, byOther := old.issue(then)
			grant, _, err := other.Redeem(byOther, old.settings, then)
			Expect(err).NotTo(HaveOccurred())
			grant.End(oauth.EndedByPerson, then)
			old.keepGrant(other, grant)

			store := now(ctx)
			withdrawn, err := store.Code(ctx, by.Code.Digest())
			Expect(err).NotTo(HaveOccurred())
			Expect(withdrawn.Snapshot()).To(Equal(code.Snapshot()))
			Expect(store.EndedSince(ctx, then)).To(HaveField("Grants", ConsistOf(grant.ID())))
			Expect(store.Authorizations(ctx)).To(And(HaveField("Codes", HaveLen(2)), HaveField("Grants", HaveLen(1))))
		})
	}
	onEveryEngine(itKeepsWhatItHolds)

	DescribeTable("continues on MariaDB, which commits each statement, when the migration was interrupted", Label("engines", "MariaDB"),
		func(ctx SpecContext, statements int) {
			at := engineServers["MariaDB"].empty(ctx)
			old := newFormerDatabase(ctx, formerServer(at))
			waiting, by := old.issue(then)
			old.keepCode(waiting, "pending")
			spent, bySpent := old.issue(then)
			grant, _, err := spent.Redeem(bySpent, old.settings, then)
			Expect(err).NotTo(HaveOccurred())
			old.keepGrant(spent, grant)
			Expect(executeAll(old.store.writer, old.store.engine, authorizationCodes[:statements]...)).To(Succeed())

			store := at.open()
			for secret, code := range map[oauth.Secret]*oauth.AuthorizationCode{by.Code: waiting, bySpent.Code: spent} {
				found, err := store.Code(ctx, secret.Digest())
				Expect(err).NotTo(HaveOccurred())
				Expect(found.Snapshot()).To(Equal(code.Snapshot()))
			}
			_, err = store.Grant(ctx, bySpent.Refresh.Digest())
			Expect(err).NotTo(HaveOccurred())
		},
		Entry("after the table was made", 1),
		Entry("after its indexes were made", 4),
		Entry("after the codes were copied", 5),
		Entry("after their grants were deleted", 7),
		Entry("after the first column was dropped", 8),
		Entry("after the last column was dropped", 11),
	)
})

// onEveryEngine describes a migration. former opens an empty database without migrating it, and now opens the same one as a service does.
func onEveryEngine(describe func(former, now func(context.Context) *Store)) {
	Context("in SQLite", func() {
		var file string
		BeforeEach(func() { file = filepath.Join(GinkgoT().TempDir(), "oauth.db") })
		describe(func(context.Context) *Store {
			Expect(create(file)).To(Succeed())
			database, err := sqlite.Open(file)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(database.Close)
			return newFileStore(file, database)
		}, func(context.Context) *Store { return openIn(filepath.Dir(file)) })
	})
	for name, engine := range engineServers {
		Context("on "+name, Label("engines", name), func() {
			var at place
			BeforeEach(func(ctx SpecContext) { at = engine.empty(ctx) })
			describe(func(context.Context) *Store { return formerServer(at) }, func(context.Context) *Store { return at.open() })
		})
	}
}

func formerServer(at place) *Store {
	GinkgoHelper()
	store, err := connectToServer(at.url, ServerOptions{SecretFile: at.secretFile})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(store.Close)
	return store
}
