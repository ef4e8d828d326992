package persistence

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"
)

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
