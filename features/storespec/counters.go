package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Counting adds the specs of oauth.WindowCounter, for a store that implements it.
func Counting(open func() oauth.Store) {
	apart(func() { counting(open) })
}

func counting(open func() oauth.Store) {
	w := &world{}
	var counter oauth.WindowCounter
	BeforeEach(func() {
		*w = newWorld(open())
		counter = w.store.(oauth.WindowCounter)
	})
	window := func(subject byte) oauth.Window {
		return oauth.Window{Name: oauth.Digest{31: subject}, Limit: 3, Length: time.Minute}
	}
	count := func(ctx context.Context, at time.Time, windows ...oauth.Window) {
		GinkgoHelper()
		Expect(counter.Count(ctx, at, windows...)).To(Succeed())
	}
	counts := func(ctx context.Context, at time.Time, windows ...oauth.Window) (taken []int) {
		GinkgoHelper()
		found, err := counter.Counts(ctx, at, windows...)
		Expect(err).NotTo(HaveOccurred())
		for _, count := range found {
			taken = append(taken, count.Taken)
		}
		return taken
	}
	one, other := window(1), window(2)

	It("counts windows independently, and returns the counts in the order of the windows",
		Label("B6"), func(ctx SpecContext) {
			count(ctx, w.now, one)
			count(ctx, w.now.Add(time.Second), other, one)
			Expect(counts(ctx, w.now.Add(time.Second), other, window(3), one)).To(Equal([]int{1, 0, 2}))
		})

	It("ends a window one length after its first count, and counts beyond its limit",
		Label("B6"), func(ctx SpecContext) {
			for i := range 5 {
				count(ctx, w.now.Add(time.Duration(i)*time.Second), one)
			}
			found, err := counter.Counts(ctx, w.now.Add(10*time.Second), one)
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(HaveLen(1))
			Expect(found[0].Taken).To(Equal(5))
			Expect(one.Wait(found[0], w.now.Add(10*time.Second))).To(Equal(50 * time.Second))
		})

	It("starts a new window exactly when the old one ends", Label("B6"), func(ctx SpecContext) {
		count(ctx, w.now, one)
		Expect(counts(ctx, w.now.Add(time.Minute-time.Millisecond), one)).To(Equal([]int{1}))
		Expect(counts(ctx, w.now.Add(time.Minute), one)).To(Equal([]int{0}))
		count(ctx, w.now.Add(time.Minute), one)
		Expect(counts(ctx, w.now.Add(time.Minute), one)).To(Equal([]int{1}))
		Expect(counts(ctx, w.now.Add(2*time.Minute-time.Millisecond), one)).To(Equal([]int{1}))
	})

	It("reads without counting", Label("B6"), func(ctx SpecContext) {
		Expect(counts(ctx, w.now, one, other)).To(Equal([]int{0, 0}))
		Expect(counts(ctx, w.now, one, other)).To(Equal([]int{0, 0}))
	})

	It("loses none of 16 concurrent counts", Label("B6", "I22"), func(ctx SpecContext) {
		errs := concurrently(16, func(i int) error {
			windows := []oauth.Window{one, other, window(byte(10 + i))}
			if i%2 > 0 {
				windows[0], windows[1] = windows[1], windows[0]
			}
			return counter.Count(ctx, w.now, windows...)
		})
		Expect(errs).To(HaveEach(Succeed()))
		Expect(counts(ctx, w.now, one, other)).To(Equal([]int{16, 16}))
	})

	It("ignores a window that was started by a clock a year ahead", Label("I23"), func(ctx SpecContext) {
		count(ctx, w.now, one)
		past := w.now.AddDate(-1, 0, 0)
		Expect(counts(ctx, past, one)).To(Equal([]int{0}))
		count(ctx, past, one)
		Expect(counts(ctx, past, one)).To(Equal([]int{1}))
	})

	It("continues a window that was started by a clock one second ahead", Label("I22"), func(ctx SpecContext) {
		count(ctx, w.now, one)
		Expect(counts(ctx, w.now.Add(-time.Second), one)).To(Equal([]int{1}))
		count(ctx, w.now.Add(-time.Second), one)
		Expect(counts(ctx, w.now, one)).To(Equal([]int{2}))
	})

	It("deletes a window exactly when it ends, and no other", Label("H6"), func(ctx SpecContext) {
		count(ctx, w.now, one)
		count(ctx, w.now.Add(time.Millisecond), other)
		Expect(w.deleteExpired(ctx, w.now.Add(time.Minute-time.Millisecond))).To(BeZero())
		Expect(w.deleteExpired(ctx, w.now.Add(time.Minute))).To(Equal(1))
		Expect(w.deleteExpired(ctx, w.now.Add(time.Minute))).To(BeZero())
	})
}
