package persistence

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("A database in which a secret went with its grant by a foreign key", Label("H6", "H7"), func() {
	itKeepsWhatItHolds := func(former, now func(context.Context) *Store) {
		It("keeps its secrets, which have no foreign key any more and are still deleted", func(ctx SpecContext) {
			old := former(ctx)
			Expect(old.transaction(ctx, func(tx *gorm.DB) error {
				_, err := migrate(tx, old.engine, migrations[:7])
				return err
			})).To(Succeed())
			grant, secretRows := rowsOf(aGrant("g", 3))
			Expect(old.writer.Omit("RefreshDigest").Create(&grantWithCode{Grant: grant, CodeDigest: make([]byte, 32), RedeemedAt: then}).Error).To(Succeed())
			Expect(old.writer.Omit("Predecessor").Create(&secretRows).Error).To(Succeed())
			Expect(addAlone(old.writer.Omit("Predecessor"), 4, oauth.AccessTokenSecret)).NotTo(Succeed())

			store := now(ctx)
			found, err := store.Grant(ctx, digest(2))
			Expect(err).NotTo(HaveOccurred())
			Expect(found.ID()).To(Equal("g"))
			Expect(addAlone(store.writer, 4, oauth.AccessTokenSecret)).To(Succeed())
			end, _ := found.Snapshot()
			refreshed := digest(5)
			Expect(store.writer.Create(&secretRow{Digest: refreshed[:], Grant: "g", Kind: string(oauth.RefreshTokenSecret)}).Error).To(Succeed())
			Expect(store.writer.Exec("UPDATE grants SET refresh_digest = ?", refreshed[:]).Error).To(Succeed())
			Expect(store.DeleteExpired(ctx, end.ForgetAfter)).To(Equal(1 + 3 + 1))
			Expect(store.DeleteExpired(ctx, absoluteEnd)).To(Equal(2), "the access token and the redeemed code")
		})
	}

	onEveryEngine(itKeepsWhatItHolds)

	It("deletes expired rows without reading a whole table", func(ctx SpecContext) {
		store := openIn(GinkgoT().TempDir())
		values := map[string]any{"now": 1, "newest": []int{1}, "steps": 5}
		filled := func(statement string) string {
			return store.reader.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Exec(statement, values) })
		}
		for _, statement := range []string{
			filled(sqliteEngine.deleteExpiredSecrets()), filled(tokenChains), filled(deleteAssertions), filled(deleteCodes), filled(deleteCounters), filled(emptySuccessors),
			store.reader.ToSQL(func(tx *gorm.DB) *gorm.DB { return expiredGrants(tx, then, &[]grantRow{}) }),
		} {
			var plan []struct{ Detail string }
			Expect(store.reader.WithContext(ctx).Raw("EXPLAIN QUERY PLAN " + statement).Scan(&plan).Error).To(Succeed())
			Expect(plan).To(ContainElement(HaveField("Detail", MatchRegexp("_by_|PRIMARY KEY"))), statement)
			Expect(plan).NotTo(ContainElement(HaveField("Detail", MatchRegexp("SCAN (grants|authorization_codes|secrets|older|used_assertions|counters)"))), statement)
		}
	})
})

// addAlone adds a secret of a grant that is not there.
func addAlone(db *gorm.DB, i int, kind oauth.SecretKind) error {
	key := digest(i)
	return db.Create(&secretRow{Digest: key[:], Grant: "unknown", Kind: string(kind), ForgetAfter: absoluteEnd}).Error
}
