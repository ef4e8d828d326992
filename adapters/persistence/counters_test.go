package persistence

import (
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// itCountsBesideBearers adds the specs of guesses that come while a window is being counted on.
func itCountsBesideBearers(server *server) {
	window := oauth.Window{Name: digest(1), Limit: 1, Length: time.Minute}
	var at place
	var store *Store
	BeforeEach(func(ctx SpecContext) {
		at = server.place(ctx)
		store = at.open()
		Expect(store.Take(ctx, then, window)).To(BeZero())
	})
	hold := func(ctx SpecContext) func() error {
		GinkgoHelper()
		release, err := server.running(ctx).Hold(ctx, at.url, "BEGIN", "SELECT name FROM counters FOR UPDATE")
		Expect(err).NotTo(HaveOccurred())
		return sync.OnceValue(release)
	}

	It("refuses a guess in a full window without waiting for its turn", Label("B6", "I22"), func(ctx SpecContext) {
		release := hold(ctx)
		DeferCleanup(release)
		Expect(store.Take(ctx, then, window, oauth.Window{Name: digest(2), Limit: 1, Length: time.Minute})).To(Equal(time.Minute))
		Expect(release()).To(Succeed())
	})

	It("leaves connections for others while guesses wait for each other", Label("B6", "I22"), func(ctx SpecContext) {
		Expect(store.AddGrant(ctx, aGrant("g", 1), nil)).To(Succeed())
		release := hold(ctx)
		DeferCleanup(release)
		var guesses sync.WaitGroup
		defer guesses.Wait()
		for range 2 * DefaultConnections {
			guesses.Go(func() {
				defer GinkgoRecover()
				Expect(store.Take(ctx, then.Add(time.Minute), oauth.Window{Name: window.Name, Limit: 100, Length: time.Minute})).To(BeZero())
			})
		}
		pool, err := store.writer.DB()
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int { return pool.Stats().InUse }).WithContext(ctx).WithTimeout(patience).Should(Equal(countAtOnce))
		Consistently(func() error { _, err := store.Grant(ctx, digest(0)); return err }).WithContext(ctx).Should(Succeed())
		Expect(release()).To(Succeed())
	})
}
