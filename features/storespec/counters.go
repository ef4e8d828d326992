package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Counting adds the specs of oauth.WindowCounter, for a store that is one too.
func Counting(open func() oauth.Store) {
	w := &world{}
	var counter oauth.WindowCounter
	BeforeEach(func() {
		*w = newWorld(open())
		counter = w.store.(oauth.WindowCounter)
	})
	ofThree := func(subject byte) oauth.Window {
		return oauth.Window{Name: oauth.Digest{31: subject}, Limit: 3, Length: time.Minute}
	}
	countOn := func(ctx context.Context, at time.Time, windows ...oauth.Window) {
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
	one, other := ofThree(1), ofThree(2)

	It("counts each window by itself, and returns the counts in the order of the windows", Label("B6"), func(ctx SpecContext) {
		countOn(ctx, w.now, one)
		countOn(ctx, w.now.Add(time.Second), other, one)
		Expect(counts(ctx, w.now.Add(time.Second), other, ofThree(3), one)).To(Equal([]int{1, 0, 2}))
	})

	It("keeps the end that the first count gave a window, and counts beyond its limit", Label("B6"), func(ctx SpecContext) {
		for i := range 5 {
			countOn(ctx, w.now.Add(time.Duration(i)*time.Second), one)
		}
		found, err := counter.Counts(ctx, w.now.Add(10*time.Second), one)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1))
		Expect(found[0].Taken).To(Equal(5))
		Expect(one.Full(found[0], w.now.Add(10*time.Second))).To(Equal(50 * time.Second))
	})

	It("begins anew at the very instant that a window is over", Label("B6"), func(ctx SpecContext) {
		countOn(ctx, w.now, one)
		Expect(counts(ctx, w.now.Add(time.Minute-time.Millisecond), one)).To(Equal([]int{1}))
		Expect(counts(ctx, w.now.Add(time.Minute), one)).To(Equal([]int{0}))
		countOn(ctx, w.now.Add(time.Minute), one)
		Expect(counts(ctx, w.now.Add(time.Minute), one)).To(Equal([]int{1}))
		Expect(counts(ctx, w.now.Add(2*time.Minute-time.Millisecond), one)).To(Equal([]int{1}))
	})

	It("reads without counting", Label("B6"), func(ctx SpecContext) {
		Expect(counts(ctx, w.now, one, other)).To(Equal([]int{0, 0}))
		Expect(counts(ctx, w.now, one, other)).To(Equal([]int{0, 0}))
	})

	It("loses none of 16 simultaneous counts", Label("B6", "I22"), func(ctx SpecContext) {
		errs := together(16, func(i int) error {
			windows := []oauth.Window{one, other, ofThree(byte(10 + i))}
			if i%2 > 0 {
				windows[0], windows[1] = windows[1], windows[0]
			}
			return counter.Count(ctx, w.now, windows...)
		})
		Expect(errs).To(HaveEach(Succeed()))
		Expect(counts(ctx, w.now, one, other)).To(Equal([]int{16, 16}))
	})

	It("ignores counts of a clock that was years ahead", Label("I23"), func(ctx SpecContext) {
		countOn(ctx, w.now, one)
		past := w.now.AddDate(-1, 0, 0)
		Expect(counts(ctx, past, one)).To(Equal([]int{0}))
		countOn(ctx, past, one)
		Expect(counts(ctx, past, one)).To(Equal([]int{1}))
	})

	It("continues a window of a clock that is a little ahead", Label("I22"), func(ctx SpecContext) {
		countOn(ctx, w.now, one)
		Expect(counts(ctx, w.now.Add(-time.Second), one)).To(Equal([]int{1}))
		countOn(ctx, w.now.Add(-time.Second), one)
		Expect(counts(ctx, w.now, one)).To(Equal([]int{2}))
	})

	It("forgets a window at the very instant that it is over, and only that one", Label("H6"), func(ctx SpecContext) {
		countOn(ctx, w.now, one)
		countOn(ctx, w.now.Add(time.Millisecond), other)
		Expect(w.forget(ctx, w.now.Add(time.Minute-time.Millisecond))).To(BeZero())
		Expect(w.forget(ctx, w.now.Add(time.Minute))).To(Equal(1))
		Expect(w.forget(ctx, w.now.Add(time.Minute))).To(BeZero())
	})
}
