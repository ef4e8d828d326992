package limits

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func claimFrom(address string, quotas ...oauth.Quota) oauth.Claim {
	return oauth.Claim{Network: requesterAt(address).Network(), Quotas: quotas}
}

// arrivals is a queue with all places in use, and the names of the waiters in the order of their
// turns.
type arrivals struct {
	*Queue
	first  func()
	names  []string
	places chan func()
}

func newArrivals(slots, maxWaiting int) *arrivals {
	a := &arrivals{Queue: NewQueue(slots, maxWaiting), places: make(chan func())}
	for range slots {
		place, _, err := a.Acquire(context.Background(), oauth.Claim{})
		Expect(err).NotTo(HaveOccurred())
		a.first = place
	}
	return a
}

// wait returns when the claim waits. The channel receives the error of Acquire, nil for a place.
func (a *arrivals) wait(ctx context.Context, name string, c oauth.Claim) <-chan error {
	before, result := a.Waiting(), make(chan error, 1)
	go func() {
		place, _, err := a.Acquire(ctx, c)
		if err == nil {
			a.names = append(a.names, name)
			a.places <- place
		}
		result <- err
	}()
	Eventually(a.Waiting).Should(BeNumerically(">", before), name)
	return result
}

// turns frees one place after the other and returns the names so far.
func (a *arrivals) turns(number int) []string {
	place := a.first
	for range number {
		place()
		Eventually(a.places).Should(Receive(&place))
	}
	a.first = place
	return a.names
}

var _ = Describe("Sharing places", Label("C52"), func() {
	It("gives places at once while there are some", func(ctx SpecContext) {
		queue := NewQueue(2, 1)
		for range 2 {
			Expect(queue.Full()).To(BeFalse())
			_, waited, err := queue.Acquire(ctx, claimFrom("192.0.2.1"))
			Expect(err).NotTo(HaveOccurred())
			Expect(waited).To(BeFalse())
		}
		Expect(queue.Full()).To(BeTrue())
		Expect(queue.Waiting()).To(BeZero())
	})

	It("reports that a claim had to wait", func(ctx SpecContext) {
		a := newArrivals(1, 1)
		waited := make(chan bool, 1)
		go func() {
			_, had, err := a.Acquire(ctx, claimFrom("192.0.2.1"))
			waited <- had && err == nil
		}()
		Eventually(a.Waiting).Should(Equal(1))
		a.first()
		Eventually(waited).Should(Receive(BeTrue()))
	})

	It("frees a place once", func(ctx SpecContext) {
		queue := NewQueue(1, 1)
		place, _, err := queue.Acquire(ctx, oauth.Claim{})
		Expect(err).NotTo(HaveOccurred())
		place()
		place()
		Expect(queue.taken).To(BeZero())
	})

	It("serves the waiters of one address in order", func(ctx SpecContext) {
		a := newArrivals(1, 9)
		for _, name := range []string{"1", "2", "3"} {
			a.wait(ctx, name, claimFrom("192.0.2.1"))
		}
		Expect(a.turns(3)).To(Equal([]string{"1", "2", "3"}))
	})

	DescribeTable("makes a person wait for one turn only, behind a flood from",
		func(ctx SpecContext, attacker func(i int) string) {
			a := newArrivals(1, 99)
			for i := range 20 {
				a.wait(ctx, "attacker", claimFrom(attacker(i)))
			}
			a.wait(ctx, "person", claimFrom("198.51.100.7"))
			Expect(a.turns(2)).To(Equal([]string{"attacker", "person"}))
		},
		Entry("one address", func(int) string { return "192.0.2.1" }),
		Entry("the addresses of a /24", func(i int) string { return fmt.Sprintf("192.0.2.%d", i) }),
		Entry("the addresses of a /64", func(i int) string { return fmt.Sprintf("2001:db8::%x", i) }),
		Entry("the networks of a /56", func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }),
		Entry("the networks of a /48", func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i<<8) }),
	)

	It("takes turns among networks, and serves each in order", func(ctx SpecContext) {
		a := newArrivals(1, 99)
		for i, address := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "198.51.100.1", "198.51.100.1",
			"203.0.113.1"} {
			a.wait(ctx, fmt.Sprint(i), claimFrom(address))
		}
		Expect(a.turns(6)).To(Equal([]string{"0", "3", "5", "1", "4", "2"}))
	})

	It("skips waiters whose share is used up, also when other places are free", func(ctx SpecContext) {
		queue, slow := NewQueue(2, 9), oauth.Quota{Key: "slow.example", Max: 1}
		holder, _, err := queue.Acquire(ctx, claimFrom("192.0.2.1", slow))
		Expect(err).NotTo(HaveOccurred())
		waits, err := queue.enter(claimFrom("192.0.2.2", slow))
		Expect(err).NotTo(HaveOccurred())
		Expect(waits).NotTo(BeNil())

		other, waited, err := queue.Acquire(ctx, claimFrom("192.0.2.3", oauth.Quota{Key: "fast.example", Max: 1}))
		Expect(err).NotTo(HaveOccurred())
		Expect(waited).To(BeFalse())
		last, err := queue.enter(claimFrom("192.0.2.2"))
		Expect(err).NotTo(HaveOccurred())
		other()
		Expect(last.done).To(BeClosed())
		Expect(waits.done).NotTo(BeClosed())
		holder()
		Expect(waits.done).To(BeClosed())
	})

	It("refuses a claim when too many wait that have one of its quotas", Label("B20"), func(ctx SpecContext) {
		address := func(name string) oauth.Quota { return oauth.Quota{Key: name, Max: 9, MaxWaiting: 2} }
		a := newArrivals(1, 99)
		a.wait(ctx, "1", claimFrom("192.0.2.1", address("one")))
		ending, cancel := context.WithCancel(ctx)
		last := a.wait(ending, "2", claimFrom("192.0.2.1", address("one")))
		Expect(a.enter(claimFrom("192.0.2.1", address("one")))).Error().To(MatchError(ErrFull))
		a.wait(ctx, "3", claimFrom("192.0.2.2", address("two")))
		cancel()
		Eventually(last).Should(Receive(MatchError(context.Canceled)))
		Expect(a.enter(claimFrom("192.0.2.1", address("one")))).NotTo(BeNil())
	})

	It("refuses a claim without a network when all places are taken and enough wait", func(ctx SpecContext) {
		a := newArrivals(1, 3)
		for range 3 {
			a.wait(ctx, "", oauth.Claim{})
		}
		Expect(a.enter(oauth.Claim{})).Error().To(MatchError(ErrFull))
	})

	It("drops the newest waiter of the largest network when it is full", func(ctx SpecContext) {
		a := newArrivals(1, 4)
		a.wait(ctx, "1", claimFrom("192.0.2.1"))
		a.wait(ctx, "2", claimFrom("192.0.2.1"))
		a.wait(ctx, "other", claimFrom("203.0.113.1"))
		dropped := a.wait(ctx, "3", claimFrom("192.0.2.1"))

		_, err := a.enter(claimFrom("198.51.100.1"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(dropped).Should(Receive(MatchError(ErrFull)))
		Expect(a.Waiting()).To(Equal(4))
		Expect(a.networks).To(HaveKey(claimFrom("203.0.113.1").Network))
	})

	It("refuses a newcomer whose network would have as many as the largest", func(ctx SpecContext) {
		a := newArrivals(1, 3)
		a.wait(ctx, "1", claimFrom("192.0.2.1"))
		a.wait(ctx, "2", claimFrom("192.0.2.1"))
		a.wait(ctx, "3", claimFrom("198.51.100.1"))
		for _, newcomer := range []string{"192.0.2.1", "198.51.100.1"} {
			Expect(a.enter(claimFrom(newcomer))).Error().To(MatchError(ErrFull), newcomer)
		}
	})

	It("forgets a waiter whose context ends", func(ctx SpecContext) {
		a := newArrivals(1, 9)
		ending, cancel := context.WithCancel(ctx)
		result := a.wait(ending, "1", claimFrom("192.0.2.1"))
		cancel()
		Eventually(result).Should(Receive(MatchError(context.Canceled)))
		Expect(a.Waiting()).To(BeZero())
		Expect(a.networks).To(BeEmpty())
		_, _, err := a.Acquire(ending, oauth.Claim{})
		Expect(err).To(MatchError(context.Canceled))
	})

	It("hands a place on that was granted after the context had ended", func(ctx SpecContext) {
		queue := NewQueue(1, 9)
		holder, _, err := queue.Acquire(ctx, oauth.Claim{})
		Expect(err).NotTo(HaveOccurred())
		late, err := queue.enter(claimFrom("192.0.2.1"))
		Expect(err).NotTo(HaveOccurred())
		next, err := queue.enter(claimFrom("192.0.2.1"))
		Expect(err).NotTo(HaveOccurred())
		holder()
		Expect(late.done).To(BeClosed())
		late.done = make(chan struct{}) // the context is seen first

		ended, cancel := context.WithCancel(ctx)
		cancel()
		Expect(queue.wait(ended, late)).To(MatchError(context.Canceled))
		Expect(next.done).To(BeClosed())
		Expect(queue.taken).To(Equal(1))
	})
})
