package persistence

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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

	It("keeps NULL where there is no time and where there are no bytes", Label("H4", "H6"), func(ctx SpecContext) {
		Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
		var rows int
		Expect(store.reader.Raw(
			`SELECT count(*) FROM grants WHERE ended_at IS NULL AND host_box IS NULL AND host_wrap IS NULL
			AND rotations = '' AND access_tokens = '' AND revoked_at IS NULL AND created_at = ?`,
			then.UnixMilli()).Scan(&rows).Error).To(Succeed())
		Expect(rows).To(Equal(1))
	})

	It("reports a rollback that fails beside its cause, and goes on", func(ctx SpecContext) {
		cause := errors.New("the cause")
		err := store.transaction(ctx, func(tx *gorm.DB) error {
			Expect(tx.Exec("ROLLBACK").Error).To(Succeed())
			return cause
		})
		Expect(err).To(And(MatchError(cause), MatchError(ContainSubstring("rolling back: "))))
		Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
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
