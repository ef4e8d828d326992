package persistence

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Keeping grants in SQLite", func() {
	var store *Store
	BeforeEach(func() { store = openFresh() })

	It("forgets more than one batch", Label("H6"), func(ctx SpecContext) {
		Expect(store.change(ctx, func(tx *sqlite.Tx) (err error) { // one transaction, because each waits for the disk
			for i := range 2 * grantsAtOnce {
				err = errors.Join(err, addGrant(tx, aFamily(fmt.Sprint(i), (2+i)*1000, i%15)))
			}
			return errors.Join(err, addGrant(tx, aFamily("h", 1_000_000, tokensAtOnce+200)), addGrant(tx, aGrant("g", 2*tokensAtOnce+200)))
		})).To(Succeed())
		var secrets int64
		Expect(store.reader.Model(&secretRow{}).Count(&secrets).Error).To(Succeed())
		end, _ := aGrant("g", 0).Snapshot()
		Expect(store.DeleteExpired(ctx, end.ForgetAfter)).To(BeNumerically("==", secrets+2*grantsAtOnce+2))
		Expect(store.reader.Model(&secretRow{}).Count(&secrets).Error).To(Succeed())
		Expect(secrets).To(BeZero())
	})

	It("keeps NULL where there is no time and where there are no bytes", Label("H4", "H6"), func(ctx SpecContext) {
		Expect(keep(ctx, store, aGrant("g", 1))).To(Succeed())
		var rows int
		Expect(store.reader.Raw(`SELECT count(*) FROM grants JOIN secrets ON grant_id = id WHERE ended_at IS NULL AND host_box IS NULL
			AND grants.host_wrap IS NULL AND secrets.host_wrap IS NULL AND successor_box IS NULL AND revoked_at IS NULL AND created_at = ?`, then.UnixMilli()).Scan(&rows).Error).To(Succeed())
		Expect(rows).To(Equal(1))
	})

	It("reports a commit that fails, and goes on", func(ctx SpecContext) {
		Expect(store.transaction(ctx, breakCommit)).To(MatchError(And(HavePrefix("committing: "), ContainSubstring("FOREIGN KEY"))))
		Expect(keep(ctx, store, aGrant("g", 1))).To(Succeed())
	})

	It("reports a rollback that fails beside its cause, and goes on", func(ctx SpecContext) {
		cause := errors.New("the cause")
		err := store.transaction(ctx, func(tx *gorm.DB) error {
			Expect(tx.Exec("ROLLBACK").Error).To(Succeed())
			return cause
		})
		Expect(err).To(And(MatchError(cause), MatchError(ContainSubstring("rolling back: "))))
		Expect(keep(ctx, store, aGrant("g", 1))).To(Succeed())
	})

	It("goes on after a change that panics", func(ctx SpecContext) {
		Expect(keep(ctx, store, aGrant("g", 1))).To(Succeed())
		Expect(func() {
			_ = store.UpdateGrant(ctx, digest(0), func(*oauth.AccessGrant) error { panic("a bug") })
		}).To(PanicWith("a bug"))
		Expect(store.UpdateGrant(ctx, digest(0), func(*oauth.AccessGrant) error { return nil })).To(Succeed())
	})

	It("takes everything back when the context ends during a change", Label("D30"), func(ctx SpecContext) {
		Expect(keep(ctx, store, aGrant("g", 1))).To(Succeed())
		short, cancel := context.WithCancel(ctx)
		Expect(store.UpdateGrant(short, digest(0), func(g *oauth.AccessGrant) error {
			g.End(oauth.EndedByHost, then)
			cancel()
			return nil
		})).To(MatchError(context.Canceled))
		found, err := store.Grant(ctx, digest(0))
		Expect(err).NotTo(HaveOccurred())
		snapshot, _ := found.Snapshot()
		Expect(snapshot.State).To(Equal("active"))
	})

	DescribeTable("writes only what has changed: not", func(ctx SpecContext, table string, change func(*oauth.AccessGrant) error) {
		grant := aGrant("g", 1)
		grant.End(oauth.EndedByHost, then)
		Expect(keep(ctx, store, grant)).To(Succeed())
		Expect(store.writer.Exec("CREATE TRIGGER untouched BEFORE UPDATE ON " + table + " BEGIN SELECT RAISE(ABORT, 'written'); END").Error).To(Succeed())
		Expect(store.UpdateGrant(ctx, digest(0), change)).To(Succeed())
	},
		Entry("the secret of a grant that was used", "secrets", func(g *oauth.AccessGrant) error { g.RecordUse(then); return nil }),
		Entry("a grant that had ended before", "grants", func(g *oauth.AccessGrant) error { g.End(oauth.EndedByHost, then.AddDate(0, 0, 1)); return nil }),
	)

	DescribeTable("says that a closed database is an outage", Label("N14"),
		func(ctx SpecContext, ask func(ctx context.Context, store oauth.Store) error) {
			Expect(store.Close()).To(Succeed())
			Expect(ask(ctx, store)).To(And(
				MatchError(oauth.ErrUnavailable), MatchError(ContainSubstring("database is closed")), Not(MatchError(oauth.ErrNotFound)), Not(MatchError(oauth.ErrDuplicate))))
		},
		Entry("when adding", func(ctx context.Context, s oauth.Store) error { return s.AddCode(ctx, aCode("c", 1), nil) }),
		Entry("when finding a code", func(ctx context.Context, s oauth.Store) error { _, err := s.Code(ctx, digest(1)); return err }),
		Entry("when redeeming", func(ctx context.Context, s oauth.Store) error { return s.RedeemCode(ctx, digest(1), nil) }),
		Entry("when finding", func(ctx context.Context, s oauth.Store) error { _, err := s.Grant(ctx, digest(0)); return err }),
		Entry("when changing", func(ctx context.Context, s oauth.Store) error { return s.UpdateGrant(ctx, digest(0), nil) }),
		Entry("when listing", func(ctx context.Context, s oauth.Store) error {
			_, err := s.AuthorizationsOf(ctx, oauth.Fingerprint{})
			return err
		}),
		Entry("when changing many", func(ctx context.Context, s oauth.Store) error {
			return s.UpdateAuthorizationsOf(ctx, oauth.Fingerprint{}, nil)
		}),
		Entry("when using an assertion", func(ctx context.Context, s oauth.Store) error { return s.UseOnce(ctx, digest(0), then) }),
		Entry("when forgetting", func(ctx context.Context, s oauth.Store) error { _, err := s.DeleteExpired(ctx, then); return err }),
	)
})
