package persistence

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

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
