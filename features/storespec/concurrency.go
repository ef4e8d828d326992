package storespec

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func concurrency(w *world) {
	It("redeems a code once when two redemptions overlap", Label("I14", "D20"), func(ctx SpecContext) {
		code := w.issued(ctx)
		both := newBarrier()
		won := make([]*oauth.Tokens, 2)
		failures := concurrently(2, func(i int) (err error) {
			won[i], err = w.redeem(ctx, code, both.wait)
			return err
		})
		Expect(failures).To(ConsistOf(Succeed(), MatchError(oauth.ErrRetried)))
		for i, failure := range failures {
			if failure == nil {
				Expect(w.admits(ctx, won[i].Access)).To(Succeed())
			}
		}
	})

	It("gives 16 concurrent refreshes the same successor", Label("I15", "D27"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		both := newBarrier()
		answers := make([]*oauth.Tokens, 16)
		Expect(concurrently(len(answers), func(i int) (err error) {
			answers[i], err = w.refresh(ctx, tokens.Refresh, both.wait)
			return err
		})).To(HaveEach(Succeed()))
		for _, answer := range answers {
			Expect(answer.Refresh.Digest()).To(Equal(answers[0].Refresh.Digest()))
			Expect(answer.Access.Digest()).To(Equal(answers[0].Access.Digest()))
		}
		Expect(w.admits(ctx, answers[0].Access)).To(Succeed())
		Expect(w.grant(ctx, answers[0].Refresh).Generation).To(BeEquivalentTo(2))
	})

	It("loses no change when two changes overlap", Label("I16"), func(ctx SpecContext) {
		_, first := w.active(ctx)
		second, err := w.refresh(ctx, first.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		both := newBarrier()
		tokens := []oauth.Secret{first.Access, second.Access}
		Expect(concurrently(2, func(i int) error {
			return w.store.UpdateGrant(ctx, tokens[i].Grant(), func(g *oauth.AccessGrant) error {
				both.wait()
				g.Revoke(tokens[i], clientID, w.now)
				return nil
			})
		})).To(HaveEach(Succeed()))
		for _, token := range tokens {
			Expect(w.admits(ctx, token)).NotTo(Succeed())
		}
	})

	It("keeps no change that a closure made to an older state", Label("I16"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		both := newBarrier()
		rotateOnce := func(int) error {
			by := refreshment(tokens.Refresh)
			grant := tokens.Refresh.Grant()
			return w.store.UpdateGrant(ctx, grant, func(g *oauth.AccessGrant) error {
				both.wait()
				if g.Snapshot().Generation > 1 {
					return errRefused
				}
				_, err := g.Refresh(by, w.settings, w.now)
				return err
			})
		}
		Expect(concurrently(2, rotateOnce)).To(ConsistOf(Succeed(), MatchError(errRefused)))
		Expect(w.grant(ctx, tokens.Refresh)).To(And(
			HaveField("Generation", BeEquivalentTo(2)), HaveField("IssuedAccess", BeEquivalentTo(2)),
			HaveField("AccessTokens", HaveLen(2))))
	})

	It("loses no change when all grants of a host token change at the same time", Label("I16", "J19"),
		func(ctx SpecContext) {
			for first := range 2 {
				_, tokens := w.active(ctx)
				refresh := func(inside func()) error { _, err := w.refresh(ctx, tokens.Refresh, inside); return err }
				replace := func(inside func()) error { return w.replaceAll(ctx, "host token", "renewed", inside) }
				acts := []func(inside func()) error{replace, refresh}
				Expect(interleave(acts[first], acts[1-first])).To(HaveEach(Succeed()))
				renewed := w.fingerprint("renewed")
				Expect(w.grant(ctx, tokens.Refresh)).To(And(
					HaveField("Generation", BeEquivalentTo(2)), HaveField("HostPrint", renewed.Bytes())))
			}
		})

	It("accepts either a redemption or a second approval, never both", Label("I5", "B13"), func(ctx SpecContext) {
		for first := range 2 {
			ticket := w.ticket()
			earlier, code := w.issue(ticket, "host token")
			again, _ := w.issue(ticket, "host token")
			Expect(w.store.AddCode(ctx, earlier, noEarlierCode)).To(Succeed())
			redeem := func(inside func()) error { _, err := w.redeem(ctx, code, inside); return err }
			approve := func(inside func()) error {
				return w.store.AddCode(ctx, again, func(earlier *oauth.AuthorizationCode) error {
					inside()
					return again.Supersedes(earlier)
				})
			}
			acts := []func(inside func()) error{approve, redeem}
			Expect(interleave(acts[first], acts[1-first])).To(ConsistOf(Succeed(), HaveOccurred()))
		}
	})

	It("redeems a code once when a code with the same digest replaces it at the same time",
		Label("B13", "I14"), func(ctx SpecContext) {
			ticket := w.ticket()
			code := w.secret(oauth.CodeSecret, ticket.ID())
			Expect(w.store.AddCode(ctx, w.issueAs(ticket, "host token", code), noEarlierCode)).To(Succeed())
			var redemptions []error
			again := w.issueAs(ticket, "host token", code)
			approve := func(inside func()) error {
				err := w.store.AddCode(ctx, again, func(earlier *oauth.AuthorizationCode) error {
					inside()
					err := again.Supersedes(earlier)
					if errors.Is(err, oauth.ErrCodeStillValid) {
						return nil
					}
					return err
				})
				if _, refused := errors.AsType[*oauth.Error](err); refused { // a redemption was faster
					return nil
				}
				return err
			}
			redeem := func(func()) error {
				both := newBarrier()
				redemptions = concurrently(2, func(int) error { _, err := w.redeem(ctx, code, both.wait); return err })
				return nil
			}
			Expect(interleave(approve, redeem)).To(HaveEach(Succeed()))
			Expect(redemptions).To(ConsistOf(Succeed(), MatchError(oauth.ErrRetried)))
		})

	It("ends a grant that is refreshed at the same time", Label("I16", "I17"), func(ctx SpecContext) {
		for first := range 2 {
			_, tokens := w.active(ctx)
			refresh := func(inside func()) error { _, _ = w.refresh(ctx, tokens.Refresh, inside); return nil }
			end := func(inside func()) error { return w.endAll(ctx, "host token", inside) }
			acts := []func(inside func()) error{end, refresh}
			Expect(interleave(acts[first], acts[1-first])).To(HaveEach(Succeed()))
			Expect(w.grant(ctx, tokens.Refresh).EndReason).To(Equal(string(oauth.EndedByHost)))
		}
	})

	It("ends a code and its grant when the code is redeemed at the same time",
		Label("I8", "J10"), func(ctx SpecContext) {
			for first := range 2 {
				code := w.issued(ctx)
				redeem := func(inside func()) error { _, _ = w.redeem(ctx, code, inside); return nil }
				end := func(inside func()) error { return w.endAll(ctx, "host token", inside) }
				acts := []func(inside func()) error{end, redeem}
				Expect(interleave(acts[first], acts[1-first])).To(HaveEach(Succeed()))
				left, err := w.store.AuthorizationsOf(ctx, w.fingerprint("host token"))
				Expect(err).NotTo(HaveOccurred())
				Expect(left).To(BeZero())
			}
		})
}

// barrier makes closures overlap where the store permits it: the first closure waits until a second
// one runs. It waits only a short time, because a store may run one closure at a time.
type barrier struct {
	running atomic.Int32
	full    chan struct{}
}

func newBarrier() *barrier { return &barrier{full: make(chan struct{})} }

func (b *barrier) wait() {
	if b.running.Add(1) == 2 {
		close(b.full)
	}
	waitFor(b.full)
}

func waitFor(event <-chan struct{}) {
	select {
	case <-event:
	case <-time.After(50 * time.Millisecond):
	}
}

// interleave runs second while the closure of first runs. That closure waits a short time for
// second to end.
func interleave(first, second func(inside func()) error) []error {
	inside, done := make(chan struct{}), make(chan struct{})
	enter := sync.OnceFunc(func() { close(inside) })
	return concurrently(2, func(i int) error {
		if i == 0 {
			defer enter()
			return first(func() { enter(); waitFor(done) })
		}
		<-inside
		defer close(done)
		return second(func() {})
	})
}

// concurrently runs act n times at once and returns the error of each run.
func concurrently(n int, act func(i int) error) []error {
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
