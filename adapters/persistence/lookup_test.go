package persistence

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Looking up a grant in a SQLite file", Label("E9", "G7"), func() {
	var store *Store
	BeforeEach(func(ctx SpecContext) {
		store = openFresh()
		Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
	})

	It("returns grants that share no state", func(ctx SpecContext) {
		first, err := store.Grant(ctx, "g")
		Expect(err).NotTo(HaveOccurred())
		first.End(oauth.EndedByHost, time.Now())
		Expect(ended(ctx, store, "g")).To(BeFalse())
	})

	It("finds in the cache what the store has written itself", Label("H5", "I22"), func(ctx SpecContext) {
		Expect(cached(store, "g")).NotTo(BeNil())
		end(ctx, store, "g")
		Expect(ended(ctx, store, "g")).To(BeTrue())
		Expect(cached(store, "g").row.State).To(Equal("ended"))
	})

	It("keeps the cache when an assertion is used, and not when anything may have changed",
		Label("I22"), func(ctx SpecContext) {
			Expect(store.UseOnce(ctx, digest(7), then)).To(Succeed())
			Expect(cached(store, "g")).NotTo(BeNil())
			Expect(store.DeleteExpired(ctx, then)).Error().NotTo(HaveOccurred())
			Expect(cached(store, "g")).To(BeNil())
		})

	It("forgets the grants alone whose last uses it records", Label("G15", "I22"), func(ctx SpecContext) {
		Expect(keep(ctx, store, aGrant("h"))).To(Succeed())
		Expect(store.RecordUse(ctx, map[string]oauth.Use{"g": {At: then, Access: 1}})).To(Succeed())
		Expect(cached(store, "g")).To(BeNil())
		Expect(cached(store, "h")).NotTo(BeNil())
	})

	It("finds nothing of a grant that was refused", Label("D30"), func(ctx SpecContext) {
		Expect(keep(ctx, store, aGrant("g"))).To(MatchError(oauth.ErrDuplicate))
		Expect(cached(store, "refused")).To(BeNil())
	})
})

// cached returns the cached grant, or nil.
func cached(s *Store, id string) *storedGrant {
	entry, err := s.file.Grants.Lookup(id, func() (sqlite.CacheEntry, error) { return nil, oauth.ErrNotFound })
	if err != nil {
		return nil
	}
	return entry.(*storedGrant)
}

// ended reports what the guard sees.
func ended(ctx context.Context, s *Store, id string) bool {
	GinkgoHelper()
	grant, err := s.Grant(ctx, id)
	Expect(err).NotTo(HaveOccurred())
	return grant.Snapshot().State == "ended"
}

func end(ctx context.Context, s *Store, id string) {
	GinkgoHelper()
	Expect(s.UpdateGrant(ctx, id, func(g *oauth.AccessGrant) error {
		g.End(oauth.EndedByHost, time.Now())
		return nil
	})).To(Succeed())
}
