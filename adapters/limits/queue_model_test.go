package limits

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Sharing places in random steps", Label("C52"), func() {
	It("never grants too much, and never leaves a place unused that a waiter could take", func() {
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
		queue := NewQueue(places, 40)
		var inside, refused atomic.Int32
		var users sync.WaitGroup
		for i := range 60 {
			users.Go(func() {
				defer GinkgoRecover()
				random := rand.New(rand.NewPCG(1, uint64(i)))
				for range 200 {
					ctx, cancel := context.WithTimeout(context.Background(),
						time.Duration(random.IntN(300))*time.Microsecond)
					place, _, err := queue.Acquire(ctx, randomClaim(random))
					if err == nil {
						Expect(inside.Add(1)).To(BeNumerically("<=", places))
						inside.Add(-1)
						place()
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
		Expect(queue.held).To(BeEmpty())
		Expect(queue.queued).To(BeEmpty())
		Expect(queue.waiting).To(BeEmpty())
		Expect(queue.networks).To(BeEmpty())
	})
})

func randomClaim(random *rand.Rand) oauth.Claim {
	share := oauth.Quota{Key: fmt.Sprint(random.IntN(3)), Max: 2, MaxWaiting: 1 + random.IntN(9)}
	switch random.IntN(5) {
	case 0:
		return oauth.Claim{Quotas: []oauth.Quota{share}}
	case 1:
		return claimFrom(fmt.Sprintf("2001:db8:%x:%x::", random.IntN(2), random.IntN(3)<<7), share)
	default:
		return claimFrom(fmt.Sprintf("192.0.%d.%d", random.IntN(3), random.IntN(3)), share)
	}
}

// model uses a queue in random steps.
type model struct {
	*Queue
	random  *rand.Rand
	waiters []*waiter
	holders []oauth.Claim
}

func newModel(seed uint64) *model {
	random := rand.New(rand.NewPCG(seed, 0))
	return &model{random: random,
		Queue: NewQueue(1+random.IntN(4), 1+random.IntN(20))}
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
		switch w, err := m.enter(claim); {
		case err != nil:
		case w == nil:
			m.holders = append(m.holders, claim)
		default:
			m.waiters = append(m.waiters, w)
		}
	}
	m.settle()
}

func (m *model) abandon(i int) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	Expect(m.wait(ctx, m.waiters[i])).To(MatchError(context.Canceled))
	m.waiters = append(m.waiters[:i], m.waiters[i+1:]...)
}

func (m *model) release(i int) {
	claim := m.holders[i]
	m.holders = append(m.holders[:i], m.holders[i+1:]...)
	m.leave(claim)
}

// settle moves waiters that were granted a place to the holders.
func (m *model) settle() {
	var still []*waiter
	for _, w := range m.waiters {
		switch {
		case slices.Contains(m.waiting, w):
			still = append(still, w)
		case w.err == nil:
			m.holders = append(m.holders, w.claim)
		}
	}
	m.waiters = still
}

func (m *model) check() {
	GinkgoHelper()
	held := map[string]int{}
	for _, claim := range m.holders {
		for _, s := range claim.Quotas {
			held[s.Key]++
			Expect(held[s.Key]).To(BeNumerically("<=", s.Max))
		}
	}
	Expect(m.taken).To(Equal(len(m.holders)))
	Expect(m.taken).To(BeNumerically("<=", m.slots))
	Expect(m.held).To(Equal(held))
	Expect(m.waiting).To(ConsistOf(m.waiters))
	Expect(len(m.waiting)).To(BeNumerically("<=", m.maxWaiting))
	for _, w := range m.waiters {
		Expect(m.admits(w.claim)).To(BeFalse())
	}
}

func (m *model) end() {
	for len(m.holders) > 0 {
		m.release(0)
		m.settle()
	}
	Expect(m.waiters).To(BeEmpty())
	Expect(m.held).To(BeEmpty())
	Expect(m.networks).To(BeEmpty())
	Expect(m.queued).To(BeEmpty())
}
