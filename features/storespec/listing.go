package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// listingTimeout ends the spec of a store that waits for itself.
const listingTimeout = 5 * time.Second

// Listing adds the specs of oauth.AuthorizationLister, for a store that implements it.
func Listing(open func() oauth.Store) {
	apart(func() {
		w := &world{}
		BeforeEach(func() { *w = newWorld(open()) })

		It("lists issued codes and all grants once", Label("H3"), func(ctx SpecContext) {
			code, active := w.codeAt(ctx, w.now, "mine"), w.grantAt(ctx, w.now, "mine")
			ended := w.endedAt(ctx, w.now)
			Expect(w.listed(ctx, func(string) {})).To(ConsistOf(code, active, ended))
		})

		It("can be changed while it lists", Label("J10", "H3"), func(ctx SpecContext) {
			done := make(chan struct{})
			go func() {
				defer GinkgoRecover()
				defer close(done)
				first, second := w.grantAt(ctx, w.now, "mine"), w.grantAt(ctx, w.now, "mine")
				Expect(w.listed(ctx, func(id string) {
					Expect(w.store.UpdateGrant(ctx, id, w.end)).To(Succeed())
				})).To(ConsistOf(first, second))
				Expect(w.store.AuthorizationsOf(ctx, w.fingerprint("mine"))).To(BeZero())
			}()
			Eventually(ctx, done).WithTimeout(listingTimeout).
				Should(BeClosed(), "the store holds a lock or a transaction while the loop body calls it")
		})
	})
}

// listed returns the ids that the store lists, after a call of each with its id.
func (w *world) listed(ctx context.Context, each func(id string)) (ids []string) {
	for one, err := range w.store.Store.(oauth.AuthorizationLister).Authorizations(ctx) {
		Expect(err).NotTo(HaveOccurred())
		each(one.ID())
		ids = append(ids, one.ID())
	}
	return ids
}
