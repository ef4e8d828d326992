package persistence

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Asking what has ended", Label("G16"), func() {
	var store *Store
	BeforeEach(func() { store = openFresh() })

	DescribeTable("tells all of it, however much ended in one millisecond or shortly after it:", func(ctx SpecContext, apart int) {
		const many = 2*endedPage + 7
		Expect(keep(ctx, store, aGrant("template", many))).To(Succeed())
		Expect(store.writer.Exec("UPDATE secrets SET revoked_at = ? + ? * grant_rank FROM (SELECT digest d, row_number() OVER (ORDER BY digest) grant_rank FROM secrets) WHERE digest = d",
			then.UnixMilli(), apart).Error).To(Succeed())
		for i := range 3 {
			grant := aGrant(fmt.Sprint(i), 0)
			Expect(keep(ctx, store, grant)).To(Succeed())
		}
		Expect(store.writer.Exec("UPDATE grants SET ended_at = ? WHERE id <> 'template'", then.UnixMilli()).Error).To(Succeed())
		ended, err := store.EndedSince(ctx, then)
		Expect(err).NotTo(HaveOccurred())
		Expect(ended.Grants).To(Equal([]string{"0", "1", "2"}))
		Expect(ended.Tokens).To(HaveLen(many))
		for i, token := range ended.Tokens {
			Expect(token).To(Equal(digest(i)))
		}
	}, Entry("together", 0), Entry("one after the other", 1))

	DescribeTable("reads only what has ended", func(question, index string) {
		var plan []struct{ Detail string }
		Expect(store.reader.Raw("EXPLAIN QUERY PLAN "+question, 1, 1, "", endedPage).Scan(&plan).Error).To(Succeed())
		Expect(plan).To(HaveEach(HaveField("Detail", Or(ContainSubstring("USING INDEX "+index), ContainSubstring("USING COVERING INDEX "+index), ContainSubstring("LAST TERM OF ORDER BY")))))
		Expect(plan).NotTo(BeEmpty())
	}, Entry("of grants", endedGrants, "grants_by_ended_at (ended_at>?)"), Entry("of tokens", revokedSecrets, "secrets_by_revoked_at (revoked_at>?)"))

	It("is an outage while the file cannot be read", Label("D30"), func(ctx SpecContext) {
		Expect(disconnect(store.reader)).To(Succeed())
		_, err := store.EndedSince(ctx, then.Add(-time.Hour))
		Expect(err).To(MatchError(ContainSubstring("asking which grants have ended")))
	})
})
