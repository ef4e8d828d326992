package persistence

import (
	"bytes"
	"os"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Replacing the server secret of a store", Label("J2"), func() {
	var directory string
	var store *Store
	day := func(n int) time.Time { return then.Add(time.Duration(n) * 24 * time.Hour) }
	secrets := func() [][]byte {
		GinkgoHelper()
		all, err := store.Secrets()
		Expect(err).NotTo(HaveOccurred())
		return all
	}
	BeforeEach(func() {
		directory = GinkgoT().TempDir()
		store = openIn(directory)
	})

	It("keeps those before it, the newest first, for every process and after a restart", func(ctx SpecContext) {
		first, other := secrets()[0], openIn(directory)
		Expect(store.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
		second := secrets()[0]
		Expect(other.ReplaceSecret(ctx, day(2), time.Time{})).To(Succeed())
		Expect(secrets()).To(HaveLen(3))
		Expect(secrets()[1:]).To(Equal([][]byte{second, first}))
		Expect(openIn(directory).Secrets()).To(Equal(secrets()))
		for _, secret := range secrets() {
			Expect(secret).To(HaveLen(32))
		}
	})

	It("is looked for at each use, because another process may have sealed with the new one already",
		Label("I22", "J6"), func(ctx SpecContext) {
			other := openIn(directory)
			for n := range 50 {
				before := secrets()[0]
				Expect(other.ReplaceSecret(ctx, day(n), day(n-2))).To(Succeed())
				Expect(secrets()[0]).NotTo(Equal(before))
				Expect(secrets()[1]).To(Equal(before))
			}
		})

	It("is found soon when it was laid there by hand", func() {
		secrets()
		lain := bytes.Repeat([]byte{7}, 32)
		Expect(os.WriteFile(store.secretFile+".lain", lain, 0o600)).To(Succeed())
		Expect(os.Rename(store.secretFile+".lain", store.secretFile)).To(Succeed())
		Eventually(secrets).Should(Equal([][]byte{lain}))
	})

	It("loses none when several do it at once while others read", Label("I22"), func(ctx SpecContext) {
		first := secrets()[0]
		var racing sync.WaitGroup
		for range 4 {
			mine := openIn(directory)
			racing.Go(func() {
				defer GinkgoRecover()
				for range 5 {
					Expect(mine.ReplaceSecret(ctx, day(1), time.Time{})).To(Succeed())
					all, err := mine.Secrets()
					Expect(err).NotTo(HaveOccurred())
					Expect(bytes.Equal(all[len(all)-1], first)).To(BeTrue())
				}
			})
		}
		racing.Wait()
		Expect(secrets()).To(HaveLen(21))
	})
})
