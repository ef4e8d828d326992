package persistence

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/storespec"
)

// unavailable is an outage, which says nothing about any secret.
func unavailable() types.GomegaMatcher {
	return And(MatchError(oauth.ErrUnavailable), Not(MatchError(oauth.ErrNotFound)))
}

var _ = Describe("Waiting to write", Label("N14", "D30", "H5"), func() {
	It("ends before a writer does that never comes to an end", func(ctx SpecContext) {
		store := openFresh()
		store.lockTimeout = 20 * time.Millisecond
		Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
		Expect(storespec.On(store).UpdateGrant(ctx, "g", func(*oauth.AccessGrant) error {
			Expect(storespec.On(store).UpdateGrant(ctx, "g", func(*oauth.AccessGrant) error { return nil })).
				To(unavailable())
			return nil
		})).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("does not interrupt a statement in a transaction that others share", func(ctx SpecContext) {
		store := openFresh()
		gone, hangUp := context.WithCancel(ctx)
		Expect(store.transaction(gone, func(tx *gorm.DB) error {
			hangUp()
			Expect(tx.Exec("UPDATE grants SET version = version").Error).To(Succeed())
			return nil
		})).To(unavailable())
	})

	It("does not cut work short once it has begun", func(ctx SpecContext) {
		store := openFresh()
		Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
		store.lockTimeout = 250 * time.Millisecond
		Expect(storespec.On(store).UpdateGrant(ctx, "g", func(g *oauth.AccessGrant) error {
			longer, cancel := context.WithTimeout(ctx, 2*store.lockTimeout)
			defer cancel()
			<-longer.Done()
			g.End(oauth.EndedByHost, then)
			return nil
		})).To(Succeed())
		grant, err := storespec.On(store).Grant(ctx, "g")
		Expect(err).NotTo(HaveOccurred())
		Expect(grant.End(oauth.EndedByHost, then)).To(BeFalse())
	})
})
