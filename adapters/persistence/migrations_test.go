package persistence

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Deleting expired rows", Label("H6"), func() {
	It("reads no whole table", func(ctx SpecContext) {
		store := openFresh()
		for _, from := range expiring {
			statement := store.engine.deleteSome(from)
			var plan []struct{ Detail string }
			Expect(store.reader.WithContext(ctx).Raw("EXPLAIN QUERY PLAN "+statement,
				1, 1).Scan(&plan).Error).To(Succeed())
			Expect(plan).To(ContainElement(HaveField("Detail", ContainSubstring("_by_end"))), statement)
			Expect(plan).NotTo(ContainElement(HaveField("Detail", MatchRegexp("SCAN "+from.table))), statement)
		}
	})
})
