package persistence

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/storespec"
)

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
				if err := grants.add(tx, aGrant(ids[i]).Snapshot()); err != nil {
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

	It("lists exactly one page", func(ctx SpecContext) {
		for i := range pageSize {
			Expect(keep(ctx, store, aGrant(fmt.Sprintf("g%04d", i)))).To(Succeed())
		}
		Expect(listed(ctx, store)).To(HaveLen(pageSize))
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
