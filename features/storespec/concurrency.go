package storespec

import (
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func racing(w *world) {
	It("lets exactly one of two overlapping redemptions win", Label("I14", "D20"), func(ctx SpecContext) {
		code := w.issued(ctx)
		met := newMeeting()
		won := make([]*oauth.Tokens, 2)
		failures := together(2, func(i int) (err error) {
			won[i], err = w.redeem(ctx, code, met.join)
			return err
		})
		Expect(failures).To(ConsistOf(Succeed(), MatchError(oauth.ErrRetried)))
		for i, failure := range failures {
			if failure == nil {
				Expect(w.admits(ctx, won[i].Access)).To(Succeed())
			}
		}
	})

	It("lets 16 parallel refreshes converge on one successor", Label("I15", "D27"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		met := newMeeting()
		answers := make([]*oauth.Tokens, 16)
		Expect(together(len(answers), func(i int) (err error) {
			answers[i], err = w.refresh(ctx, tokens.Refresh, met.join)
			return err
		})).To(HaveEach(Succeed()))
		for _, answer := range answers {
			Expect(answer.Refresh.Digest()).To(Equal(answers[0].Refresh.Digest()))
			Expect(w.admits(ctx, answer.Access)).To(Succeed())
		}
		Expect(w.read(ctx, answers[0].Refresh).Generation).To(Equal(2))
	})

	It("lets either a redemption or a second approval win, never both", Label("I5", "B13"), func(ctx SpecContext) {
		for first := range 2 {
			ticket := w.ticket()
			earlier, code := w.issue(ticket, "host token")
			again, _ := w.issue(ticket, "host token")
			Expect(w.store.AddCode(ctx, earlier, never)).To(Succeed())
			redeem := func(inside func()) error { _, err := w.redeem(ctx, code, inside); return err }
			approve := func(inside func()) error {
				return w.store.AddCode(ctx, again, func(earlier *oauth.AuthorizationCode) error {
					inside()
					return again.Supersedes(earlier)
				})
			}
			acts := []func(inside func()) error{approve, redeem}
			Expect(overtaken(acts[first], acts[1-first])).To(ConsistOf(Succeed(), HaveOccurred()))
		}
	})

	It("redeems a code once that is replaced by one with the same value meanwhile", Label("B13", "I14"), func(ctx SpecContext) {
		ticket, code := w.ticket(), secret(oauth.CodeSecret)
		Expect(w.store.AddCode(ctx, w.issueAs(ticket, "host token", code), never)).To(Succeed())
		var redemptions []error
		approve := func(inside func()) error {
			return w.store.AddCode(ctx, w.issueAs(ticket, "host token", code), func(*oauth.AuthorizationCode) error { inside(); return nil })
		}
		redeem := func(func()) error {
			met := newMeeting()
			redemptions = together(2, func(int) error { _, err := w.redeem(ctx, code, met.join); return err })
			return nil
		}
		Expect(overtaken(approve, redeem)).To(HaveEach(Succeed()))
		Expect(redemptions).To(ConsistOf(Succeed(), MatchError(oauth.ErrRetried)))
	})

	It("leaves no grant alive that was ended while it was refreshed", Label("I16", "I17"), func(ctx SpecContext) {
		for first := range 2 {
			_, tokens := w.active(ctx)
			refresh := func(inside func()) error { _, _ = w.refresh(ctx, tokens.Refresh, inside); return nil }
			end := func(inside func()) error { return w.endAll(ctx, "host token", inside) }
			acts := []func(inside func()) error{end, refresh}
			Expect(overtaken(acts[first], acts[1-first])).To(HaveEach(Succeed()))
			Expect(w.read(ctx, tokens.Refresh).EndReason).To(Equal(string(oauth.EndedByHost)))
		}
	})

	It("leaves neither a code nor a grant alive that was ended while the code was redeemed", Label("I8", "J10"), func(ctx SpecContext) {
		for first := range 2 {
			code := w.issued(ctx)
			redeem := func(inside func()) error { _, _ = w.redeem(ctx, code, inside); return nil }
			end := func(inside func()) error { return w.endAll(ctx, "host token", inside) }
			acts := []func(inside func()) error{end, redeem}
			Expect(overtaken(acts[first], acts[1-first])).To(HaveEach(Succeed()))
			left, err := w.store.AuthorizationsOf(ctx, w.print("host token"))
			Expect(err).NotTo(HaveOccurred())
			Expect(left).To(BeZero())
		}
	})
}

// meeting makes closures overlap wherever the store lets them: the first waits until a second one is inside, though not for
// long, because a store may well let in one at a time.
type meeting struct {
	inside atomic.Int32
	met    chan struct{}
}

func newMeeting() *meeting { return &meeting{met: make(chan struct{})} }

func (m *meeting) join() {
	if m.inside.Add(1) == 2 {
		close(m.met)
	}
	waitFor(m.met)
}

func waitFor(event <-chan struct{}) {
	select {
	case <-event:
	case <-time.After(50 * time.Millisecond):
	}
}

// overtaken runs one act while the closure of the other is inside, which waits until the overtaker is done, though not for long.
func overtaken(act, overtaker func(inside func()) error) []error {
	inside, done := make(chan struct{}), make(chan struct{})
	enter := sync.OnceFunc(func() { close(inside) })
	return together(2, func(i int) error {
		if i == 0 {
			defer enter()
			return act(func() { enter(); waitFor(done) })
		}
		<-inside
		defer close(done)
		return overtaker(func() {})
	})
}

// together runs act n times at once and returns what each run returned.
func together(n int, act func(i int) error) []error {
	results := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			defer GinkgoRecover()
			results[i] = act(i)
		})
	}
	running.Wait()
	return results
}
