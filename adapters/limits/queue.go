package limits

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"github.com/pasteport/pasteport/domain/oauth"
)

// ErrFull is returned when too many claims are waiting.
var ErrFull = errors.New("too many requests are waiting")

// Queue is an oauth.Slots in which networks take turns: a free slot goes to the network that had
// none for longest, and there to the oldest waiter. An attacker who controls a whole /48 thus
// delays other networks by one turn only. The queue skips a waiter whose quotas are exhausted. It
// is safe for concurrent use and starts no goroutines.
//
// golang.org/x/sync/semaphore serves its waiters in order, so an attacker's would go first, and a
// waiter with several quotas would hold one while it waits for another.
type Queue struct {
	slots, maxWaiting int

	mu       sync.Mutex
	taken    int
	held     map[string]int // slots by quota key
	queued   map[string]int // waiters by quota key
	waiting  []*waiter      // the oldest first
	networks map[netip.Prefix]*network
	turns    int // so far
}

// network is a network with waiters.
type network struct{ waiters, lastTurn int }

// waiter is a claim that is waiting.
type waiter struct {
	claim   oauth.Claim
	network *network
	done    chan struct{}
	err     error // nil when the waiter got a slot; set before done is closed
}

var _ oauth.Slots = (*Queue)(nil)

// NewQueue returns a queue whose slots are all free. Up to maxWaiting claims can wait.
func NewQueue(slots, maxWaiting int) *Queue {
	return &Queue{
		slots:      slots,
		maxWaiting: maxWaiting,
		held:       map[string]int{},
		queued:     map[string]int{},
		networks:   map[netip.Prefix]*network{},
	}
}

// Acquire implements oauth.Slots. If the queue is full, the newest waiter of the network with the
// most waiters gets ErrFull and makes room for this claim; if that would be this claim's network,
// Acquire returns ErrFull.
func (q *Queue) Acquire(ctx context.Context, c oauth.Claim) (release func(), waited bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	w, err := q.enter(c)
	if err != nil {
		return nil, false, err
	}
	if w != nil {
		if err := q.wait(ctx, w); err != nil {
			return nil, true, err
		}
	}
	return sync.OnceFunc(func() { q.leave(c) }), w != nil, nil
}

// Waiting returns the number of waiters.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Full reports whether all slots are held.
func (q *Queue) Full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken >= q.slots
}

// enter takes a free slot and returns nil, or returns a new waiter.
func (q *Queue) enter(c oauth.Claim) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.admits(c) { // a free slot means that the quotas of all waiters are exhausted
		q.take(c)
		return nil, nil
	}
	for _, quota := range c.Quotas {
		if quota.MaxWaiting > 0 && q.queued[quota.Key] >= quota.MaxWaiting {
			return nil, ErrFull
		}
	}
	if len(q.waiting) >= q.maxWaiting && !q.evictFor(c.Network) {
		return nil, ErrFull
	}
	return q.add(c), nil
}

func (q *Queue) add(c oauth.Claim) *waiter {
	n := q.networks[c.Network]
	if n == nil {
		q.turns++
		n = &network{lastTurn: q.turns}
		q.networks[c.Network] = n
	}
	n.waiters++
	for _, quota := range c.Quotas {
		q.queued[quota.Key]++
	}
	w := &waiter{claim: c, network: n, done: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	return w
}

// finish removes a waiter and wakes it.
func (q *Queue) finish(w *waiter, err error) {
	i := slices.Index(q.waiting, w)
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if w.network.waiters--; w.network.waiters == 0 {
		delete(q.networks, w.claim.Network)
	}
	for _, quota := range w.claim.Quotas {
		decrement(q.queued, quota.Key)
	}
	w.err = err
	close(w.done)
}

// evictFor makes room for a waiter of a network, and reports whether another one has more waiters
// even without the evicted one.
func (q *Queue) evictFor(newcomer netip.Prefix) bool {
	needed := 2
	if own := q.networks[newcomer]; own != nil {
		needed += own.waiters
	}
	var newest *waiter
	for _, w := range q.waiting {
		if w.network.waiters >= needed {
			needed, newest = w.network.waiters, w
		}
	}
	if newest == nil {
		return false
	}
	q.finish(newest, ErrFull)
	return true
}

func (q *Queue) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case slices.Contains(q.waiting, w):
		q.finish(w, ctx.Err())
	case w.err == nil: // the slot was granted at the same time
		q.free(w.claim)
	}
	return ctx.Err()
}

func (q *Queue) leave(c oauth.Claim) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free(c)
}

func (q *Queue) admits(c oauth.Claim) bool {
	return q.taken < q.slots && !slices.ContainsFunc(c.Quotas, func(quota oauth.Quota) bool {
		return q.held[quota.Key] >= quota.Max
	})
}

func (q *Queue) take(c oauth.Claim) {
	q.taken++
	for _, quota := range c.Quotas {
		q.held[quota.Key]++
	}
}

// free returns a slot, and grants free slots to waiters.
func (q *Queue) free(c oauth.Claim) {
	q.taken--
	for _, quota := range c.Quotas {
		decrement(q.held, quota.Key)
	}
	for w := q.next(); w != nil; w = q.next() {
		q.turns++
		w.network.lastTurn = q.turns
		q.take(w.claim)
		q.finish(w, nil)
	}
}

// next returns the waiter that can take a free slot, nil if there is none.
func (q *Queue) next() (next *waiter) {
	for _, w := range q.waiting {
		if (next == nil || w.network.lastTurn < next.network.lastTurn) && q.admits(w.claim) {
			next = w
		}
	}
	return next
}

func decrement(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}
