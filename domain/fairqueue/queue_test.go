package fairqueue

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestFairQueue(t *testing.T) {
	suite.Run(t, "Places shared in turns")
}

func from(address string, shares ...Quota) Claim {
	a := netip.MustParseAddr(address)
	lengths := []int{64, 56, 48}
	if a.Is4() {
		lengths = []int{32, 24}
	}
	c := Claim{Quotas: shares}
	for _, bits := range lengths {
		c.Networks = append(c.Networks, netip.PrefixFrom(a, bits).Masked())
	}
	return c
}

// arrivals is a queue with all places in use, and the names of the waiters in the order of their
// turns.
type arrivals struct {
	*Queue
	first  *Slot
	names  []string
	places chan *Slot
}

func newArrivals(l Limits) *arrivals {
	a := &arrivals{Queue: New(l), places: make(chan *Slot)}
	for range l.Slots {
		place, err := a.Acquire(context.Background(), Claim{})
		Expect(err).NotTo(HaveOccurred())
		a.first = place
	}
	return a
}

// wait returns when the claim waits. The channel receives the error of Enter, nil for a place.
func (a *arrivals) wait(ctx context.Context, name string, c Claim) <-chan error {
	before, result := a.Waiting(), make(chan error, 1)
	go func() {
		place, err := a.Acquire(ctx, c)
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
		place.Release()
		Eventually(a.places).Should(Receive(&place))
	}
	a.first = place
	return a.names
}

var _ = Describe("Sharing places", Label("C52"), func() {
	It("gives places at once while there are some", func(ctx SpecContext) {
		queue := New(Limits{Slots: 2, MaxWaiting: 1, MaxWaitingPerAddress: 1})
		for range 2 {
			Expect(queue.Full()).To(BeFalse())
			place, err := queue.Acquire(ctx, from("192.0.2.1"))
			Expect(err).NotTo(HaveOccurred())
			Expect(place.Waited).To(BeFalse())
		}
		Expect(queue.Full()).To(BeTrue())
		Expect(queue.Waiting()).To(BeZero())
	})

	It("reports that a claim had to wait", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 1, MaxWaitingPerAddress: 1})
		a.wait(ctx, "one", from("192.0.2.1"))
		a.turns(1)
		Expect(a.first.Waited).To(BeTrue())
	})

	It("frees a place once", func(ctx SpecContext) {
		queue := New(Limits{Slots: 1, MaxWaiting: 1, MaxWaitingPerAddress: 1})
		place, err := queue.Acquire(ctx, Claim{})
		Expect(err).NotTo(HaveOccurred())
		place.Release()
		place.Release()
		Expect(queue.taken).To(BeZero())
	})

	It("serves the waiters of one address in order", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 9, MaxWaitingPerAddress: 9})
		for _, name := range []string{"1", "2", "3"} {
			a.wait(ctx, name, from("192.0.2.1"))
		}
		Expect(a.turns(3)).To(Equal([]string{"1", "2", "3"}))
	})

	DescribeTable("makes a person wait for one turn only, behind a flood from",
		func(ctx SpecContext, attacker func(i int) string) {
			a := newArrivals(Limits{Slots: 1, MaxWaiting: 99, MaxWaitingPerAddress: 99})
			for i := range 20 {
				a.wait(ctx, "attacker", from(attacker(i)))
			}
			a.wait(ctx, "person", from("198.51.100.7"))
			Expect(a.turns(2)).To(Equal([]string{"attacker", "person"}))
		},
		Entry("one address", func(int) string { return "192.0.2.1" }),
		Entry("the addresses of a /24", func(i int) string { return fmt.Sprintf("192.0.2.%d", i) }),
		Entry("the addresses of a /64", func(i int) string { return fmt.Sprintf("2001:db8::%x", i) }),
		Entry("the networks of a /56", func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }),
		Entry("the networks of a /48", func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i<<8) }),
	)

	It("takes turns inside a network too", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 99, MaxWaitingPerAddress: 99})
		for i, address := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "198.51.100.1",
			"198.51.100.1"} {
			a.wait(ctx, fmt.Sprint(i), from(address))
		}
		Expect(a.turns(6)).To(Equal([]string{"0", "4", "3", "5", "1", "2"}))
	})

	It("skips waiters whose share is used up, also when other places are free", func(ctx SpecContext) {
		queue, slow := New(Limits{Slots: 2, MaxWaiting: 9, MaxWaitingPerAddress: 9}), Quota{Key: "slow.example", Max: 1}
		holder, err := queue.Acquire(ctx, from("192.0.2.1", slow))
		Expect(err).NotTo(HaveOccurred())
		waits, err := queue.enqueue(from("192.0.2.2", slow))
		Expect(err).NotTo(HaveOccurred())
		Expect(waits).NotTo(BeNil())

		other, err := queue.Acquire(ctx, from("192.0.2.3", Quota{Key: "fast.example", Max: 1}))
		Expect(err).NotTo(HaveOccurred())
		Expect(other.Waited).To(BeFalse())
		last, err := queue.enqueue(from("192.0.2.2"))
		Expect(err).NotTo(HaveOccurred())
		other.Release()
		Expect(last.done).To(BeClosed())
		Expect(waits.done).NotTo(BeClosed())
		holder.Release()
		Expect(waits.done).To(BeClosed())
	})

	It("refuses an address with too many waiters, and not its neighbors", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 99, MaxWaitingPerAddress: 2})
		a.wait(ctx, "1", from("192.0.2.1"))
		a.wait(ctx, "2", from("192.0.2.1"))
		Expect(a.Acquire(ctx, from("192.0.2.1"))).Error().To(MatchError(ErrFull))
		a.wait(ctx, "3", from("192.0.2.2"))
	})

	It("takes turns among the users of an address, and makes room for another one where one fills it",
		Label("B20"), func(ctx SpecContext) {
			ofUser := func(user string) Claim {
				c := from("192.0.2.1")
				c.User = user
				return c
			}
			a := newArrivals(Limits{Slots: 1, MaxWaiting: 99, MaxWaitingPerAddress: 3})
			a.wait(ctx, "1", ofUser("flood"))
			a.wait(ctx, "2", ofUser("flood"))
			last := a.wait(ctx, "3", ofUser("flood"))
			Expect(a.Acquire(ctx, ofUser("flood"))).Error().To(MatchError(ErrFull))
			w, err := a.enqueue(ofUser("person"))
			Expect(err).NotTo(HaveOccurred())
			Eventually(last).Should(Receive(MatchError(ErrFull)))
			Expect(a.turns(1)).To(Equal([]string{"1"}))
			a.first.Release()
			Eventually(w.done).Should(BeClosed())
		})

	It("applies no limit of an address to claims without networks", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 3, MaxWaitingPerAddress: 1})
		for range 3 {
			a.wait(ctx, "", Claim{})
		}
		Expect(a.Acquire(ctx, Claim{})).Error().To(MatchError(ErrFull))
	})

	It("drops the newest waiter of the largest network when it is full", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 4, MaxWaitingPerAddress: 9})
		a.wait(ctx, "1", from("192.0.2.1"))
		a.wait(ctx, "2", from("192.0.2.1"))
		a.wait(ctx, "other", from("192.0.2.2"))
		dropped := a.wait(ctx, "3", from("192.0.2.1"))

		_, err := a.enqueue(from("198.51.100.1"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(dropped).Should(Receive(MatchError(ErrFull)))
		Expect(a.Waiting()).To(Equal(4))
		Expect(a.waiting.at(pathOf(from("192.0.2.2")))).NotTo(BeNil())
	})

	It("refuses a newcomer whose network would have as many as the largest", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 3, MaxWaitingPerAddress: 9})
		a.wait(ctx, "1", from("192.0.2.1"))
		a.wait(ctx, "2", from("192.0.2.1"))
		a.wait(ctx, "3", from("198.51.100.1"))
		for _, newcomer := range []string{"192.0.2.1", "198.51.100.1"} {
			Expect(a.enqueue(from(newcomer))).Error().To(MatchError(ErrFull), newcomer)
		}
	})

	It("makes room inside of a network that fills the queue", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 2, MaxWaitingPerAddress: 9})
		a.wait(ctx, "1", from("192.0.2.1"))
		dropped := a.wait(ctx, "2", from("192.0.2.1"))
		_, err := a.enqueue(from("192.0.2.2"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(dropped).Should(Receive(MatchError(ErrFull)))
	})

	It("forgets a waiter whose context ends", func(ctx SpecContext) {
		a := newArrivals(Limits{Slots: 1, MaxWaiting: 9, MaxWaitingPerAddress: 9})
		ending, cancel := context.WithCancel(ctx)
		result := a.wait(ending, "1", from("192.0.2.1"))
		cancel()
		Eventually(result).Should(Receive(MatchError(context.Canceled)))
		Expect(a.Waiting()).To(BeZero())
		Expect(a.waiting.children).To(BeEmpty())
		Expect(a.Acquire(ending, Claim{})).Error().To(MatchError(context.Canceled))
	})

	It("hands a place on that was granted after the context had ended", func(ctx SpecContext) {
		queue := New(Limits{Slots: 1, MaxWaiting: 9, MaxWaitingPerAddress: 9})
		holder, err := queue.Acquire(ctx, Claim{})
		Expect(err).NotTo(HaveOccurred())
		late, err := queue.enqueue(from("192.0.2.1"))
		Expect(err).NotTo(HaveOccurred())
		next, err := queue.enqueue(from("192.0.2.1"))
		Expect(err).NotTo(HaveOccurred())
		holder.Release()
		Expect(late.done).To(BeClosed())
		late.done = make(chan struct{}) // the context is seen first

		ended, cancel := context.WithCancel(ctx)
		cancel()
		Expect(queue.wait(ended, late)).To(MatchError(context.Canceled))
		Expect(next.done).To(BeClosed())
		Expect(queue.taken).To(Equal(1))
	})
})
