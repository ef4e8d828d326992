package persistence

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/storespec"
)

var _ = Describe("Keeping grants in SQLite", func() {
	var store *Store
	BeforeEach(func() { store = openFresh() })

	It("forgets more than one batch", Label("H6"), func(ctx SpecContext) {
		var rows []oauth.GrantSnapshot
		for i := range 1100 {
			rows = append(rows, aGrant(fmt.Sprint(i)).Snapshot())
		}
		Expect(addAll(ctx, store, grants, rows)).To(Succeed())
		Expect(store.DeleteExpired(ctx, rows[0].ForgetAfter)).To(Equal(1100))
		var left int64
		Expect(store.reader.Table("grants").Count(&left).Error).To(Succeed())
		Expect(left).To(BeZero())
	})

	It("redeems the newest code when another process has changed the one that was checked",
		Label("I14"), func(ctx SpecContext) {
			Expect(storespec.On(store).AddCode(ctx, aCode("c"), nil)).To(Succeed())
			known, err := storespec.On(store).Code(ctx, "c")
			Expect(err).NotTo(HaveOccurred())
			Expect(store.writer.Exec("UPDATE authorization_codes SET version = version + 1, subject = 'ada'").Error).
				To(Succeed())
			var subjects []string
			of := oauth.Selection{Code: "c", Known: &oauth.Authorizations{Codes: []*oauth.AuthorizationCode{known}}}
			Expect(store.Change(ctx, of, func(found *oauth.Authorizations) error {
				subjects = append(subjects, found.Codes[0].Subject())
				redeemed := found.Codes[0].Snapshot()
				redeemed.State = "redeemed"
				found.Codes[0] = oauth.RestoreCode(redeemed)
				found.Grants = append(found.Grants, aGrant("c"))
				return nil
			})).To(Succeed())
			Expect(subjects).To(Equal([]string{"", "ada"}))
			Expect(storespec.On(store).Grant(ctx, "c")).NotTo(BeNil())
		})

	It("takes everything back when the context ends during a change", Label("D30"), func(ctx SpecContext) {
		Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
		short, cancel := context.WithCancel(ctx)
		Expect(storespec.On(store).UpdateGrant(short, "g", func(g *oauth.AccessGrant) error {
			g.End(oauth.EndedByHost, then)
			cancel()
			return nil
		})).To(MatchError(context.Canceled))
		found, err := storespec.On(store).Grant(ctx, "g")
		Expect(err).NotTo(HaveOccurred())
		snapshot := found.Snapshot()
		Expect(snapshot.State).To(Equal("active"))
	})

	DescribeTable("writes only what has changed: not", func(ctx SpecContext, change func(*oauth.AccessGrant) error) {
		grant := aGrant("g")
		grant.End(oauth.EndedByHost, then)
		Expect(keep(ctx, store, grant)).To(Succeed())
		Expect(store.writer.Exec("CREATE TRIGGER untouched BEFORE UPDATE ON grants BEGIN SELECT " +
			"RAISE(ABORT, 'written'); END").Error).To(Succeed())
		Expect(storespec.On(store).UpdateGrant(ctx, "g", change)).To(Succeed())
	},
		Entry("a grant that was used", func(g *oauth.AccessGrant) error {
			g.RecordUse(oauth.Use{At: then, Access: 1})
			return nil
		}),
		Entry("a grant that had ended before", func(g *oauth.AccessGrant) error {
			g.End(oauth.EndedByHost, then.AddDate(0, 0, 1))
			return nil
		}),
	)

	It("says that a closed database is an outage", Label("N14"), func(ctx SpecContext) {
		Expect(store.Close()).To(Succeed())
		_, finding := store.Find(ctx, oauth.Selection{Grant: "g"})
		_, forgetting := store.DeleteExpired(ctx, then)
		for _, err := range []error{
			finding, forgetting, storespec.On(store).AddCode(ctx, aCode("c"), nil),
			storespec.On(store).RedeemCode(ctx, "c", nil), storespec.On(store).UpdateGrant(ctx, "g", nil),
			storespec.On(store).UpdateAuthorizationsOf(ctx, oauth.Fingerprint{}, nil),
			store.RecordUse(ctx, map[string]oauth.Use{"g": {At: then}}), store.UseOnce(ctx, digest(0), then),
		} {
			Expect(err).To(And(
				MatchError(oauth.ErrUnavailable), MatchError(ContainSubstring("database is closed")),
				Not(MatchError(oauth.ErrNotFound)), Not(MatchError(oauth.ErrDuplicate))))
		}
	})
})

// unavailable is an outage, which says nothing about any secret.
func unavailable() types.GomegaMatcher {
	return And(MatchError(oauth.ErrUnavailable), Not(MatchError(oauth.ErrNotFound)))
}

var _ = Describe("Waiting to write", Label("N14", "D30", "H5"), func() {
	It("ends before a writer does that never comes to an end", func(ctx SpecContext) {
		store := openFresh()
		store.lockTimeout = 20 * time.Millisecond
		Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
		Expect(storespec.On(store).UpdateGrant(ctx, "g", func(*oauth.AccessGrant) error {
			Expect(storespec.On(store).UpdateGrant(ctx, "g", func(*oauth.AccessGrant) error { return nil })).
				To(unavailable())
			return nil
		})).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("does not interrupt a statement in a transaction that others share", func(ctx SpecContext) {
		store := openFresh()
		gone, hangUp := context.WithCancel(ctx)
		Expect(store.transaction(gone, func(tx *gorm.DB) error {
			hangUp()
			Expect(tx.Exec("UPDATE grants SET version = version").Error).To(Succeed())
			return nil
		})).To(unavailable())
	})
})

var _ = Describe("A SQLite file that is damaged", Label("J2", "H7"), func() {
	var file string
	BeforeEach(func() { file = filepath.Join(GinkgoT().TempDir(), "oauth.db") })
	begin := func() {
		GinkgoHelper()
		store := openIn(filepath.Dir(file))
		Expect(keep(GinkgoT().Context(), store, aGrant("g"))).To(Succeed())
		Expect(store.Close()).To(Succeed())
	}
	cut := func(size int64) func() {
		return func() { Expect(os.Truncate(file, size)).To(Succeed()) }
	}

	DescribeTable("is refused at the start, with the remedy", func(damage func()) {
		begin()
		damage()
		before, _ := os.ReadFile(file)
		for _, open := range []func() error{
			func() error { _, err := OpenSQLite(file); return err },
			func() error { _, err := Migrate(file, ServerOptions{}); return err },
		} {
			Expect(open()).To(
				MatchError(And(ContainSubstring("opening the OAuth database "+file), ContainSubstring("restore"),
					ContainSubstring("it is not a SQLite database or it is damaged"))))
		}
		after, _ := os.ReadFile(file)
		Expect(after).To(Equal(before), "nothing is made of it")
	},
		Entry("when it is cut in its head", cut(10)),
		Entry("when it is cut in a page", cut(5000)),
		Entry("when it is full of zeros", func() {
			write(strings.Repeat("\x00", 3*4096))(file)
		}),
	)

	It("is made anew when it is gone, under the server secret that is there", func() {
		begin()
		secret, err := os.ReadFile(file + ".secret")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Remove(file)).To(Succeed())
		Expect(listed(GinkgoT().Context(), openIn(filepath.Dir(file)))).To(BeEmpty())
		Expect(os.ReadFile(file + ".secret")).To(Equal(secret))
	})
})

var _ = Describe("Deleting expired rows", Label("H6"), func() {
	It("reads no whole table", func(ctx SpecContext) {
		store := openFresh()
		fill(ctx, store)
		var statements []string
		keep := func(db *gorm.DB) {
			statements = append(statements, db.Dialector.Explain(db.Statement.SQL.String(), db.Statement.Vars...))
		}
		Expect(store.writer.Callback().Query().Register("kept", keep)).To(Succeed())
		Expect(store.writer.Callback().Raw().Register("kept", keep)).To(Succeed())
		Expect(store.DeleteExpired(ctx, then.AddDate(1, 0, 0))).To(BeNumerically(">", 900))
		Expect(len(statements)).To(BeNumerically(">=", 2*len(expiring)))
		for _, statement := range statements {
			var plan []struct{ Detail string }
			Expect(store.reader.Raw("EXPLAIN QUERY PLAN "+statement).Scan(&plan).Error).To(Succeed(), statement)
			Expect(plan).To(HaveEach(HaveField("Detail", Not(ContainSubstring("SCAN")))), statement)
		}
	})
})

// listed returns the ids of what the store lists.
func listed(ctx context.Context, store *Store) (ids []string) {
	GinkgoHelper()
	for one, err := range store.Authorizations(ctx) {
		Expect(err).NotTo(HaveOccurred())
		ids = append(ids, one.ID())
	}
	return ids
}

var _ = Describe("Listing codes and grants", Label("H3"), func() {
	var store *Store
	BeforeEach(func() { store = openFresh() })

	It("lists each of more than two pages once, in the order of the ids", func(ctx SpecContext) {
		var ids []string
		Expect(store.change(ctx, func(tx *gorm.DB) error {
			for i := range 2*pageSize + 1 {
				ids = append(ids, fmt.Sprintf("g%04d", i))
				if err := grants.write(tx, nil, []oauth.GrantSnapshot{aGrant(ids[i]).Snapshot()}); err != nil {
					return err
				}
			}
			return nil
		})).To(Succeed())
		for _, id := range []string{"a", "g0000a", "z"} {
			Expect(storespec.On(store).AddCode(ctx, aCode(id), nil)).To(Succeed())
			ids = append(ids, id)
		}
		slices.Sort(ids)
		Expect(listed(ctx, store)).To(Equal(ids))
	})

	It("lists once what is redeemed meanwhile", func(ctx SpecContext) {
		for _, id := range []string{"1", "3", "5"} {
			Expect(storespec.On(store).AddCode(ctx, aCode(id), nil)).To(Succeed())
		}
		redeem := func(id string) {
			toGrant := func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error) { return aGrant(id), nil }
			Expect(storespec.On(store).RedeemCode(ctx, id, toGrant)).To(Succeed())
		}
		for i := range pageSize {
			Expect(keep(ctx, store, aGrant(fmt.Sprintf("2%04d", i)))).To(Succeed())
		}
		Expect(keep(ctx, store, aGrant("4"))).To(Succeed())
		var ids []string
		for one, err := range store.Authorizations(ctx) {
			Expect(err).NotTo(HaveOccurred())
			if ids = append(ids, one.ID()); one.ID() == "1" { // its page of grants is read
				redeem("1")
				redeem("3")
				redeem("5")
			}
		}
		Expect(ids).To(HaveLen(pageSize + 4))
		Expect(ids).To(Equal(slices.Compact(slices.Sorted(slices.Values(ids)))))
	})

	It("stops when its reader stops, and tells an error once", func(ctx SpecContext) {
		for _, id := range []string{"a", "c"} {
			Expect(storespec.On(store).AddCode(ctx, aCode(id), nil)).To(Succeed())
		}
		Expect(keep(ctx, store, aGrant("b"))).To(Succeed())
		for _, last := range []string{"a", "b", "c"} {
			for one, err := range store.Authorizations(ctx) {
				Expect(err).NotTo(HaveOccurred())
				if one.ID() == last {
					break
				}
			}
		}
		Expect(store.Close()).To(Succeed())
		var failures []error
		for _, err := range store.Authorizations(ctx) {
			failures = append(failures, err)
		}
		Expect(failures).To(ConsistOf(MatchError(oauth.ErrUnavailable)))
	})
})

var _ = Describe("Asking what has ended", Label("G16"), func() {
	var store *Store
	BeforeEach(func() { store = openFresh() })

	DescribeTable("tells all of it, however much ended in one millisecond or shortly after it:",
		func(ctx SpecContext, apart int) {
			const many = 1007
			var rows []oauth.GrantSnapshot
			for i := range many {
				at := then.Add(time.Duration(i*apart) * time.Millisecond)
				grant := aGrant(fmt.Sprintf("%06d", i)).Snapshot()
				grant.RevokedAt = at
				grant.AccessTokens = []oauth.AccessToken{{Number: 1},
					{Number: 2, Digest: digest(i), RevokedAt: at}}
				if i%2 == 0 {
					grant.State, grant.EndedAt = "ended", at
				}
				rows = append(rows, grant)
			}
			Expect(addAll(ctx, store, grants, rows)).To(Succeed())
			ended, err := store.EndedSince(ctx, then)
			Expect(err).NotTo(HaveOccurred())
			Expect(ended.Grants).To(HaveLen((many + 1) / 2))
			Expect(ended.Tokens).To(HaveLen(many / 2))
			slices.SortFunc(ended.Tokens, func(a, b oauth.Digest) int { return bytes.Compare(a[:], b[:]) })
			for i := range many {
				if i%2 == 0 {
					Expect(ended.Grants).To(HaveKey(fmt.Sprintf("%06d", i)))
				} else {
					Expect(ended.Tokens[i/2]).To(Equal(digest(i)))
				}
			}
		}, Entry("together", 0), Entry("one after the other", 1))

	It("reads only what has ended", func() {
		var plan []struct{ Detail string }
		query := "EXPLAIN QUERY PLAN " + grants.rows + " WHERE revoked_at >= ?"
		Expect(store.reader.Raw(query, 1).Scan(&plan).Error).To(Succeed())
		Expect(plan).To(ContainElement(HaveField("Detail",
			ContainSubstring("USING INDEX grants_by_revocation (revoked_at>?)"))))
		Expect(plan).NotTo(ContainElement(HaveField("Detail", MatchRegexp(`SCAN grants`))))
	})

	It("is an outage while the file cannot be read", Label("D30"), func(ctx SpecContext) {
		Expect(store.Close()).To(Succeed())
		_, err := store.EndedSince(ctx, then.Add(-time.Hour))
		Expect(err).To(MatchError(ContainSubstring("asking which grants have ended")))
	})
})
