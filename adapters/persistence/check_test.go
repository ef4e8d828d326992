package persistence

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/features/storespec"
)

// problems are what does not hold, by name.
func problems(checks []Check) map[string]string {
	found := map[string]string{}
	for _, check := range checks {
		if check.Problem != "" {
			found[check.Name] = check.Problem
		}
	}
	return found
}

// forgetful are how an administrator lets a server forget what it has answered, and takes that
// back.
var forgetful = map[string][2]string{
	"PostgreSQL": {"ALTER ROLE pasteport SET synchronous_commit = off",
		"ALTER ROLE pasteport RESET synchronous_commit"},
	"MariaDB": {"SET GLOBAL innodb_flush_log_at_trx_commit = 2", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"},
}

var _ = Describe("Checking a store", func() {
	for name, openEmpty := range openNew {
		Context("of "+name, using(name), func() {
			var store *Store
			BeforeEach(func(ctx SpecContext) { store = openEmpty(ctx) })

			It("is content with one that is in order, and changes nothing", func(ctx SpecContext) {
				Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
				prints, err := seal.NewKeyRing(store).SecretFingerprints()
				Expect(err).NotTo(HaveOccurred())
				for range 2 {
					checks := store.Checks(ctx)
					Expect(problems(checks)).To(BeEmpty())
					Expect(checks).To(ContainElement(Check{Name: "grants", Found: "rows: 1, all readable"}))
					Expect(fingerprint(store.reader)).To(Equal(unused), "it was only looked at")
				}
				Expect(store.VerifySecret(ctx, prints)).To(Succeed())
				Expect(problems(store.Checks(ctx))).To(BeEmpty())
			})

			DescribeTable("says what does not hold, and what to do about it",
				func(ctx SpecContext, check, said string, spoil func() error) {
					Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
					Expect(spoil()).To(Succeed())
					Expect(problems(store.Checks(ctx))).
						To(And(HaveLen(1), HaveKeyWithValue(check, ContainSubstring(said))))
				},
				Entry("a newer schema", Label("H7"), "schema", "another version of Pasteport", func() error {
					return store.writer.Exec("INSERT INTO schema_migrations (id) VALUES ('9999_more')").Error
				}),
				Entry("a database of somebody else", "schema", "name the data of a service", func() error {
					return store.writer.Exec("DROP TABLE schema_migrations").Error
				}),
				Entry("a secret that is gone", Label("J2"), "server secret", "restore the file", func() error {
					return os.Remove(store.secretFile)
				}),
				Entry("a secret of another database", Label("J2"), "server secret",
					"the store was used with another server secret", func() error {
						return storeFingerprint(store.writer, unused, oauth.Fingerprint{1})
					}),
				Entry("a grant in an unknown state", "grants", "the row g: this version cannot read it", func() error {
					return store.writer.Exec("UPDATE grants SET state = 'paused'").Error
				}),
				Entry("a grant whose tokens are damaged", "grants", "reading tokens", func() error {
					return store.writer.Exec("UPDATE grants SET access_tokens = ?", "[{]").Error
				}),
				Entry("a code in an unknown state", "authorization_codes",
					"the row c: this version cannot read it", func() error {
						code := aCode("c").Snapshot()
						code.State = "paused"
						return codes.write(store.writer, nil, []oauth.CodeSnapshot{code})
					}),
			)
		})
	}

	for name, engine := range engineServers {
		Context("of "+name, Label("engines"), func() {
			It("finds clocks that are apart", func(ctx SpecContext) {
				store := engine.place(ctx).open()
				Expect(store.Checks(ctx)).
					To(ContainElement(
						And(HaveField("Name", "clock"), HaveField("Found", MatchRegexp(`^within \d+ms of`)))))
				clock := store.engine.clock
				for _, wrong := range []string{" + 60000", " - 60000"} {
					store.engine.clock = clock + wrong
					Expect(problems(store.Checks(ctx))).
						To(And(HaveLen(1),
							HaveKeyWithValue("clock", MatchRegexp(`are (1m0(\.00\d)?|59\.\d+)s apart: .*NTP`))))
				}
			})

			It("finds a server that forgets what it has answered", Label("H5"), Serial, func(ctx SpecContext) {
				at := engine.place(ctx)
				at.open()
				forgets := forgetful[name]
				Expect(engine.running(ctx).Exec(ctx, forgets[0])).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(engine.running(ctx).Exec(ctx, forgets[1])).To(Succeed()) })
				store, err := OpenUnchecked(at.url, ServerOptions{SecretFile: at.secretFile})
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(store.Close)
				Expect(problems(store.Checks(ctx))).
					To(And(HaveLen(1), HaveKeyWithValue("durability", ContainSubstring("a power failure would"))))
			})
		})
	}

	It("finds a file that is damaged", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		file := filepath.Join(directory, "oauth.db")
		store := openIn(directory)
		fill(ctx, store)
		Expect(store.Close()).To(Succeed())
		content, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		copy(content[len(content)-3*4096:], make([]byte, 2*4096))
		Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
		store, err = OpenUnchecked(file, ServerOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(store.Close)
		Expect(problems(store.Checks(ctx))).To(HaveKeyWithValue("file", ContainSubstring("restore it")))
	})

	It("accepts rows that were in use, and rows that another version would forget at another time",
		Label("H5"), func(ctx SpecContext) {
			store := openFresh()
			Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
			Expect(storespec.On(store).UpdateGrant(ctx, "g", func(g *oauth.AccessGrant) error {
				g.RecordUse(oauth.Use{At: then, Access: 1})
				g.End(oauth.EndedByHost, then.Add(time.Hour))
				return nil
			})).To(Succeed())
			Expect(store.writer.Exec("UPDATE grants SET forget_after = forget_after + 1000").Error).To(Succeed())
			Expect(problems(store.Checks(ctx))).To(BeEmpty())
		})
})
