package persistence

import (
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// itCountsBesideBearers adds the specs of counting while another transaction holds the window.
func itCountsBesideBearers(server *server) {
	window := oauth.Window{Name: digest(1), Limit: 1, Length: time.Minute}
	var at place
	var store *Store
	BeforeEach(func(ctx SpecContext) {
		at = server.place(ctx)
		store = at.open()
		Expect(store.Count(ctx, then, window)).To(Succeed())
	})
	hold := func(ctx SpecContext) func() error {
		GinkgoHelper()
		release, err := server.running(ctx).Hold(ctx, at.url, "BEGIN", "SELECT name FROM counters FOR UPDATE")
		Expect(err).NotTo(HaveOccurred())
		return sync.OnceValue(release)
	}

	It("reads a window without waiting for a transaction that holds it", Label("B6", "I22"), func(ctx SpecContext) {
		release := hold(ctx)
		DeferCleanup(release)
		counts, err := store.Counts(ctx, then, window)
		Expect(err).NotTo(HaveOccurred())
		Expect(counts).To(HaveLen(1))
		Expect(counts[0].Taken).To(Equal(1))
		Expect(release()).To(Succeed())
	})

	It("leaves connections for others while wrong tokens wait for each other",
		Label("B6", "I22"), func(ctx SpecContext) {
			Expect(keep(ctx, store, aGrant("g"))).To(Succeed())
			release := hold(ctx)
			DeferCleanup(release)
			var wrong sync.WaitGroup
			defer wrong.Wait()
			for range 2 * DefaultConnections {
				wrong.Go(func() {
					defer GinkgoRecover()
					Expect(store.Count(ctx, then, window)).To(Succeed())
				})
			}
			pool, err := store.writer.DB()
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() int {
				return pool.Stats().InUse
			}).WithContext(ctx).WithTimeout(sqlite.BusyTimeout).Should(Equal(countAtOnce))
			Consistently(func() error {
				_, err := store.Grant(ctx, "g")
				return err
			}).WithContext(ctx).Should(Succeed())
			Expect(release()).To(Succeed())
		})
}
