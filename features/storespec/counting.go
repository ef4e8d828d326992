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
	take := func(ctx context.Context, at time.Time, windows ...oauth.Window) time.Duration {
		GinkgoHelper()
		wait, err := counter.Take(ctx, at, windows...)
		Expect(err).NotTo(HaveOccurred())
		return wait
	}
	fill := func(ctx context.Context, window oauth.Window) {
		GinkgoHelper()
		for range window.Limit {
			Expect(take(ctx, w.now, window)).To(BeZero())
		}
	}
	one, other := ofThree(1), ofThree(2)

	It("counts up to the limit of a window, and says how long a full one lasts", Label("B6", "C21"), func(ctx SpecContext) {
		fill(ctx, one)
		Expect(take(ctx, w.now.Add(time.Second), one)).To(Equal(59 * time.Second))
		Expect(take(ctx, w.now.Add(time.Second), other)).To(BeZero())
	})

	It("begins anew at the very instant that a window is over", Label("B6", "C21"), func(ctx SpecContext) {
		fill(ctx, one)
		Expect(take(ctx, w.now.Add(time.Minute-time.Millisecond), one)).To(Equal(time.Millisecond))
		w.now = w.now.Add(time.Minute)
		fill(ctx, one)
		Expect(take(ctx, w.now, one)).To(Equal(time.Minute))
	})

	It("counts on all windows or on none, and waits for the last", Label("B6"), func(ctx SpecContext) {
		longer := oauth.Window{Name: oauth.Digest{3}, Limit: 3, Length: time.Hour}
		fill(ctx, one)
		for range 4 {
			Expect(take(ctx, w.now, longer, one)).To(Equal(time.Minute))
			Expect(take(ctx, w.now, one, other)).To(Equal(time.Minute))
		}
		fill(ctx, other)
		fill(ctx, longer)
		Expect(take(ctx, w.now, one, longer, other)).To(Equal(time.Hour))
	})

	It("takes back what was counted, and never more", Label("B6"), func(ctx SpecContext) {
		Expect(counter.GiveBack(ctx, w.now, one)).To(Succeed())
		fill(ctx, one)
		fill(ctx, other)
		Expect(counter.GiveBack(ctx, w.now, one, other)).To(Succeed())
		for _, window := range []oauth.Window{one, other} {
			Expect(take(ctx, w.now, window)).To(BeZero())
			Expect(take(ctx, w.now, window)).To(Equal(time.Minute))
		}
	})

	It("takes nothing back from a window that was opened later", Label("B6"), func(ctx SpecContext) {
		taken := w.now
		fill(ctx, one)
		w.now = w.now.Add(time.Minute)
		fill(ctx, one)
		Expect(counter.GiveBack(ctx, taken, one)).To(Succeed())
		Expect(take(ctx, w.now, one)).To(Equal(time.Minute))
	})

	It("takes back what was counted on a window that somebody had opened a moment later by their clock", Label("B6", "I22"), func(ctx SpecContext) {
		taken := w.now
		w.now = w.now.Add(time.Second)
		fill(ctx, one)
		Expect(counter.GiveBack(ctx, taken, one)).To(Succeed())
		Expect(take(ctx, w.now, one)).To(BeZero())
	})

	It("lets exactly as many of 16 at the same moment pass as there is room for", Label("B6", "I22"), func(ctx SpecContext) {
		waits := make([]time.Duration, 16)
		errs := together(len(waits), func(i int) (err error) {
			windows := []oauth.Window{one, ofThree(byte(10 + i))}
			if i%2 > 0 {
				windows[0], windows[1] = windows[1], windows[0]
			}
			waits[i], err = counter.Take(ctx, w.now, windows...)
			return err
		})
		Expect(errs).To(HaveEach(Succeed()))
		passed := 0
		for _, wait := range waits {
			if wait == 0 {
				passed++
			}
		}
		Expect(passed).To(Equal(one.Limit))
	})

	It("locks nobody out for years when the clock is set back", Label("I23"), func(ctx SpecContext) {
		fill(ctx, one)
		Expect(take(ctx, w.now.AddDate(-1, 0, 0), one)).To(BeZero())
	})

	It("goes on with a window that a clock has opened which is a little ahead", Label("I22"), func(ctx SpecContext) {
		fill(ctx, one)
		Expect(take(ctx, w.now.Add(-time.Second), one)).To(Equal(time.Minute + time.Second))
	})

	It("forgets a window at the very instant that it is over, and only that one", Label("H6"), func(ctx SpecContext) {
		fill(ctx, one)
		Expect(take(ctx, w.now.Add(time.Millisecond), other)).To(BeZero())
		Expect(w.forget(ctx, w.now.Add(time.Minute-time.Millisecond))).To(BeZero())
		Expect(w.forget(ctx, w.now.Add(time.Minute))).To(Equal(1))
		Expect(w.forget(ctx, w.now.Add(time.Minute))).To(BeZero())
	})
}
