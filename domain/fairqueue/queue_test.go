package fairqueue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestFairQueue(t *testing.T) {
	suite.Run(t, "Places shared in turns")
}

func from(address string, shares ...Share) Claim {
	a := netip.MustParseAddr(address)
	lengths := []int{64, 56, 48}
	if a.Is4() {
		lengths = []int{32, 24}
	}
	c := Claim{Shares: shares}
	for _, bits := range lengths {
		c.Networks = append(c.Networks, netip.PrefixFrom(a, bits).Masked())
	}
	return c
}

// arrivals is a queue with the names of those who waited, in the order of their turns. One place is in use.
type arrivals struct {
	*Queue
	first  *Place
	names  []string
	places chan *Place
}

func newArrivals(l Limits) *arrivals {
	a := &arrivals{Queue: New(l), places: make(chan *Place)}
	for range l.Places {
		place, err := a.Enter(context.Background(), Claim{})
		Expect(err).NotTo(HaveOccurred())
		a.first = place
	}
	return a
}

// wait lets a claim wait and returns what Enter returned; nil is a place.
func (a *arrivals) wait(ctx context.Context, name string, c Claim) <-chan error {
	before, result := a.Waiting(), make(chan error, 1)
	go func() {
		place, err := a.Enter(ctx, c)
		if err == nil {
			a.names = append(a.names, name)
			a.places <- place
		}
		result <- err
	}()
	Eventually(a.Waiting).Should(BeNumerically(">", before), name)
	return result
}

// turns frees one place after the other and returns who got it.
func (a *arrivals) turns(number int) []string {
	place := a.first
	for range number {
		place.Leave()
		Eventually(a.places).Should(Receive(&place))
	}
	a.first = place
	return a.names
}

var _ = Describe("Sharing places", Label("C52"), func() {
	It("gives places at once while there are some", func(ctx SpecContext) {
		queue := New(Limits{Places: 2, Waiting: 1, WaitingPerAddress: 1})
		for range 2 {
			Expect(queue.Full()).To(BeFalse())
			place, err := queue.Enter(ctx, from("192.0.2.1"))
			Expect(err).NotTo(HaveOccurred())
			Expect(place.Waited).To(BeFalse())
		}
		Expect(queue.Full()).To(BeTrue())
		Expect(queue.Waiting()).To(BeZero())
	})

	It("reports that a place was waited for", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 1, WaitingPerAddress: 1})
		a.wait(ctx, "one", from("192.0.2.1"))
		a.turns(1)
		Expect(a.first.Waited).To(BeTrue())
	})

	It("frees a place once", func(ctx SpecContext) {
		queue := New(Limits{Places: 1, Waiting: 1, WaitingPerAddress: 1})
		place, err := queue.Enter(ctx, Claim{})
		Expect(err).NotTo(HaveOccurred())
		place.Leave()
		place.Leave()
		Expect(queue.taken).To(BeZero())
	})

	It("lets one address wait in order", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 9, WaitingPerAddress: 9})
		for _, name := range []string{"1", "2", "3"} {
			a.wait(ctx, name, from("192.0.2.1"))
		}
		Expect(a.turns(3)).To(Equal([]string{"1", "2", "3"}))
	})

	DescribeTable("lets another network wait for one turn, behind", func(ctx SpecContext, attacker func(i int) string) {
		a := newArrivals(Limits{Places: 1, Waiting: 99, WaitingPerAddress: 99})
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

	It("takes turns inside of a network too", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 99, WaitingPerAddress: 99})
		for i, address := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "198.51.100.1", "198.51.100.1"} {
			a.wait(ctx, fmt.Sprint(i), from(address))
		}
		Expect(a.turns(6)).To(Equal([]string{"0", "4", "3", "5", "1", "2"}))
	})

	It("passes over those whose share is used up, also when other places are free", func(ctx SpecContext) {
		queue, slow := New(Limits{Places: 2, Waiting: 9, WaitingPerAddress: 9}), Share{Key: "slow.example", Max: 1}
		holder, err := queue.Enter(ctx, from("192.0.2.1", slow))
		Expect(err).NotTo(HaveOccurred())
		waits, err := queue.join(from("192.0.2.2", slow))
		Expect(err).NotTo(HaveOccurred())
		Expect(waits).NotTo(BeNil())

		other, err := queue.Enter(ctx, from("192.0.2.3", Share{Key: "fast.example", Max: 1}))
		Expect(err).NotTo(HaveOccurred())
		Expect(other.Waited).To(BeFalse())
		last, err := queue.join(from("192.0.2.2"))
		Expect(err).NotTo(HaveOccurred())
		other.Leave()
		Expect(last.settled).To(BeClosed())
		Expect(waits.settled).NotTo(BeClosed())
		holder.Leave()
		Expect(waits.settled).To(BeClosed())
	})

	It("refuses an address that lets too many wait, and nothing of its neighbors", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 99, WaitingPerAddress: 2})
		a.wait(ctx, "1", from("192.0.2.1"))
		a.wait(ctx, "2", from("192.0.2.1"))
		Expect(a.Enter(ctx, from("192.0.2.1"))).Error().To(MatchError(ErrFull))
		a.wait(ctx, "3", from("192.0.2.2"))
	})

	It("has no limit of an address for those without networks", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 3, WaitingPerAddress: 1})
		for range 3 {
			a.wait(ctx, "", Claim{})
		}
		Expect(a.Enter(ctx, Claim{})).Error().To(MatchError(ErrFull))
	})

	It("drops the newest waiter of the largest network when it is full", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 4, WaitingPerAddress: 9})
		a.wait(ctx, "1", from("192.0.2.1"))
		a.wait(ctx, "2", from("192.0.2.1"))
		a.wait(ctx, "other", from("192.0.2.2"))
		dropped := a.wait(ctx, "3", from("192.0.2.1"))

		_, err := a.join(from("198.51.100.1"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(dropped).Should(Receive(MatchError(ErrFull)))
		Expect(a.Waiting()).To(Equal(4))
		Expect(a.waiting.at(pathOf(from("192.0.2.2")))).NotTo(BeNil())
	})

	It("refuses a newcomer whose network would have as many as the largest", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 3, WaitingPerAddress: 9})
		a.wait(ctx, "1", from("192.0.2.1"))
		a.wait(ctx, "2", from("192.0.2.1"))
		a.wait(ctx, "3", from("198.51.100.1"))
		for _, newcomer := range []string{"192.0.2.1", "198.51.100.1"} {
			Expect(a.join(from(newcomer))).Error().To(MatchError(ErrFull), newcomer)
		}
	})

	It("makes room inside of a network that fills the queue", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 2, WaitingPerAddress: 9})
		a.wait(ctx, "1", from("192.0.2.1"))
		dropped := a.wait(ctx, "2", from("192.0.2.1"))
		_, err := a.join(from("192.0.2.2"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(dropped).Should(Receive(MatchError(ErrFull)))
	})

	It("forgets a waiter whose context ends", func(ctx SpecContext) {
		a := newArrivals(Limits{Places: 1, Waiting: 9, WaitingPerAddress: 9})
		ending, cancel := context.WithCancel(ctx)
		result := a.wait(ending, "1", from("192.0.2.1"))
		cancel()
		Eventually(result).Should(Receive(MatchError(context.Canceled)))
		Expect(a.Waiting()).To(BeZero())
		Expect(a.waiting.inner).To(BeEmpty())
		Expect(a.Enter(ending, Claim{})).Error().To(MatchError(context.Canceled))
	})

	It("hands a place on that was granted when the context had ended", func(ctx SpecContext) {
		queue := New(Limits{Places: 1, Waiting: 9, WaitingPerAddress: 9})
		holder, err := queue.Enter(ctx, Claim{})
		Expect(err).NotTo(HaveOccurred())
		late, err := queue.join(from("192.0.2.1"))
		Expect(err).NotTo(HaveOccurred())
		next, err := queue.join(from("192.0.2.1"))
		Expect(err).NotTo(HaveOccurred())
		holder.Leave()
		Expect(late.settled).To(BeClosed())
		late.settled = make(chan struct{}) // the context is seen first

		ended, cancel := context.WithCancel(ctx)
		cancel()
		Expect(queue.await(ended, late)).To(MatchError(context.Canceled))
		Expect(next.settled).To(BeClosed())
		Expect(queue.taken).To(Equal(1))
	})
})

var _ = Describe("Sharing places for long", Label("C52"), func() {
	It("never grants too much and never leaves a place unused that somebody could take", func() {
		for seed := range uint64(50) {
			m := newModel(seed)
			for range 300 {
				m.step()
				m.check()
			}
			m.end()
		}
	})

	It("is safe for concurrent use", func() {
		const places = 3
		queue := New(Limits{Places: places, Waiting: 40, WaitingPerAddress: 10})
		var inside, refused atomic.Int32
		var users sync.WaitGroup
		for i := range 60 {
			users.Go(func() {
				defer GinkgoRecover()
				random := rand.New(rand.NewPCG(1, uint64(i)))
				for range 200 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(300))*time.Microsecond)
					place, err := queue.Enter(ctx, randomClaim(random))
					if err == nil {
						Expect(inside.Add(1)).To(BeNumerically("<=", places))
						inside.Add(-1)
						place.Leave()
					} else {
						refused.Add(1)
					}
					cancel()
				}
			})
		}
		users.Wait()
		Expect(refused.Load()).To(BeNumerically(">", 0))
		Expect(queue.taken).To(BeZero())
		Expect(queue.shares).To(BeEmpty())
		Expect(queue.waiting.size).To(BeZero())
		Expect(queue.waiting.inner).To(BeEmpty())
	})
})

func randomClaim(random *rand.Rand) Claim {
	share := Share{Key: fmt.Sprint(random.IntN(3)), Max: 2}
	switch random.IntN(5) {
	case 0:
		return Claim{Shares: []Share{share}}
	case 1:
		return from(fmt.Sprintf("2001:db8:%x:%x::", random.IntN(2), random.IntN(3)<<7), share)
	default:
		return from(fmt.Sprintf("192.0.%d.%d", random.IntN(3), random.IntN(3)), share)
	}
}

// model uses a queue in random steps.
type model struct {
	*Queue
	random  *rand.Rand
	waiters []*waiter
	holders [][]Share
}

func newModel(seed uint64) *model {
	random := rand.New(rand.NewPCG(seed, 0))
	return &model{random: random, Queue: New(Limits{Places: 1 + random.IntN(4), Waiting: 1 + random.IntN(20), WaitingPerAddress: 1 + random.IntN(6)})}
}

func (m *model) step() {
	switch m.random.IntN(5) {
	case 0:
		if len(m.waiters) > 0 {
			m.abandon(m.random.IntN(len(m.waiters)))
		}
	case 1:
		if len(m.holders) > 0 {
			m.release(m.random.IntN(len(m.holders)))
		}
	default:
		claim := randomClaim(m.random)
		switch w, err := m.join(claim); {
		case err != nil:
		case w == nil:
			m.holders = append(m.holders, claim.Shares)
		default:
			m.waiters = append(m.waiters, w)
		}
	}
	m.settle()
}

func (m *model) abandon(i int) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	Expect(m.await(ctx, m.waiters[i])).To(MatchError(context.Canceled))
	m.waiters = append(m.waiters[:i], m.waiters[i+1:]...)
}

func (m *model) release(i int) {
	shares := m.holders[i]
	m.holders = append(m.holders[:i], m.holders[i+1:]...)
	m.leave(shares)
}

// settle moves waiters that were granted a place to the holders.
func (m *model) settle() {
	var still []*waiter
	for _, w := range m.waiters {
		switch {
		case w.leaf != nil:
			still = append(still, w)
		case w.err == nil:
			m.holders = append(m.holders, w.shares)
		}
	}
	m.waiters = still
}

func (m *model) check() {
	GinkgoHelper()
	held := map[string]int{}
	for _, shares := range m.holders {
		for _, s := range shares {
			held[s.Key]++
			Expect(held[s.Key]).To(BeNumerically("<=", s.Max))
		}
	}
	Expect(m.taken).To(Equal(len(m.holders)))
	Expect(m.taken).To(BeNumerically("<=", m.limits.Places))
	Expect(m.shares).To(Equal(held))
	Expect(m.waiting.size).To(Equal(len(m.waiters)))
	Expect(m.waiting.size).To(BeNumerically("<=", m.limits.Waiting))
	for _, w := range m.waiters {
		Expect(m.admits(w.shares)).To(BeFalse())
	}
}

func (m *model) end() {
	for len(m.holders) > 0 {
		m.release(0)
		m.settle()
	}
	Expect(m.waiters).To(BeEmpty())
	Expect(m.shares).To(BeEmpty())
	Expect(m.waiting.inner).To(BeEmpty())
}
