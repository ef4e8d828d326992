package persistence

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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

	It("finds in the cache what was read since the last commit", Label("H5", "I22"), func(ctx SpecContext) {
		Expect(ended(ctx, store, "g")).To(BeFalse())
		Expect(cached(store, "g")).NotTo(BeNil())
		end(ctx, store, "g")
		Expect(cached(store, "g")).To(BeNil())
		Expect(ended(ctx, store, "g")).To(BeTrue())
		Expect(cached(store, "g").row.State).To(Equal("ended"))
	})

	It("finds what was there before a grant that was refused", Label("D30"), func(ctx SpecContext) {
		end(ctx, store, "g")
		Expect(keep(ctx, store, aGrant("g"))).To(MatchError(oauth.ErrDuplicate))
		Expect(ended(ctx, store, "g")).To(BeTrue())
	})
})

// cached returns the cached grant, or nil.
func cached(s *Store, id string) *storedGrant {
	entry, err := s.file.Grants.Lookup(id, func() (any, error) { return nil, oauth.ErrNotFound })
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
