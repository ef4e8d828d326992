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
		Expect(keep(ctx, store, aGrant("g", 2))).To(Succeed())
	})

	It("returns grants that share no state", func(ctx SpecContext) {
		first, err := store.Grant(ctx, digest(0))
		Expect(err).NotTo(HaveOccurred())
		first.End(oauth.EndedByHost, time.Now())
		Expect(ended(ctx, store, digest(0))).To(BeFalse())
	})

	It("finds in the cache what the store has written itself", Label("H5", "I22"), func(ctx SpecContext) {
		Expect([]*secretWithGrant{cached(store, digest(0)), cached(store, digest(1))}).NotTo(ContainElement(BeNil()))
		end(ctx, store, digest(0))
		Expect(ended(ctx, store, digest(0))).To(BeTrue())
		Expect(cached(store, digest(0)).grant.State).To(Equal("ended"))
		Expect(cached(store, digest(1))).To(BeNil(), "another secret of the changed grant")
	})

	It("keeps the cache when an assertion is used, and not when anything may have changed", Label("I22"), func(ctx SpecContext) {
		Expect(store.UseOnce(ctx, digest(7), then)).To(Succeed())
		Expect(cached(store, digest(0))).NotTo(BeNil())
		Expect(store.DeleteExpired(ctx, then)).Error().NotTo(HaveOccurred())
		Expect(cached(store, digest(0))).To(BeNil())
	})

	It("finds nothing of a grant that was refused", Label("D30"), func(ctx SpecContext) {
		Expect(keep(ctx, store, aGrant("refused", 3))).To(MatchError(oauth.ErrDuplicate)) // its first secret exists
		Expect(cached(store, digest(2))).To(BeNil())
	})
})

// cached returns the cached entry of a secret, or nil.
func cached(s *Store, secret oauth.Digest) *secretWithGrant {
	entry, err := s.file.Grants.Lookup(secret, func() (sqlite.CacheEntry, error) { return nil, oauth.ErrNotFound })
	if err != nil {
		return nil
	}
	return entry.(*secretWithGrant)
}

// ended reports what the guard sees.
func ended(ctx context.Context, s *Store, secret oauth.Digest) bool {
	GinkgoHelper()
	grant, err := s.Grant(ctx, secret)
	Expect(err).NotTo(HaveOccurred())
	snapshot, _ := grant.Snapshot()
	return snapshot.State == "ended"
}

func end(ctx context.Context, s *Store, secret oauth.Digest) {
	GinkgoHelper()
	Expect(s.UpdateGrant(ctx, secret, func(g *oauth.AccessGrant) error {
		g.End(oauth.EndedByHost, time.Now())
		return nil
	})).To(Succeed())
}
