// Package fairqueue shares a bounded number of slots fairly among networks and their users. Start
// reading at Queue.
package fairqueue

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
)

// ErrFull is returned when too many claims are waiting.
var ErrFull = errors.New("too many requests are waiting")

// Claim is a request for a slot.
type Claim struct {
	// Networks are the networks around the address of the claim, the smallest first, as
	// oauth.Requester.Networks returns them. Claims without networks count as one network, in which
	// any number of claims can wait.
	Networks []netip.Prefix
	// User distinguishes the users of an address, who take turns too; for example by the token that
	// a claim is about.
	User string
	// Quotas limit the slots that claims with the same key hold at the same time.
	Quotas []Quota
}

// Quota limits the claims with one key: this claim waits while they hold Max slots. Max is at least
// 1.
type Quota struct {
	Key string
	Max int
}

// Limits bounds a queue.
type Limits struct {
	Slots                int
	MaxWaiting           int // in all
	MaxWaitingPerAddress int // in one smallest network
}

// Queue is a semaphore with a hierarchical round-robin queue. It is safe for concurrent use and
// starts no goroutines.
//
// A free slot goes to the largest networks in turn, within the chosen one to its inner networks in
// turn, down to the smallest, then to the users of that address in turn, and there to the oldest
// waiter. An attacker who controls a whole /48 thus delays other networks by one turn only. The
// queue skips a waiter whose quotas are exhausted.
type Queue struct {
	limits  Limits
	mu      sync.Mutex
	taken   int
	used    map[string]int // held slots by quota key
	waiting *network
}

// New returns a queue whose slots are all free.
func New(l Limits) *Queue {
	return &Queue{limits: l, used: map[string]int{}, waiting: newNetwork(nil, "")}
}

// Slot is a held slot.
type Slot struct {
	// Waited reports whether the claim had to wait.
	Waited bool

	release func()
}

// Release frees the slot. Further calls do nothing.
func (s *Slot) Release() { s.release() }

// Acquire waits for a slot until ctx ends. If the queue is full, the newest waiter of the network
// with the most waiters gets ErrFull and makes room for this claim; if that would be this claim,
// Acquire returns ErrFull. The users of an address compete in the same way.
func (q *Queue) Acquire(ctx context.Context, c Claim) (*Slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := q.enqueue(c)
	if err != nil {
		return nil, err
	}
	waited := w != nil
	if waited {
		if err := q.wait(ctx, w); err != nil {
			return nil, err
		}
	}
	return &Slot{Waited: waited, release: sync.OnceFunc(func() { q.leave(c.Quotas) })}, nil
}

// Waiting returns the number of waiters.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.size
}

// Full reports whether all slots are held.
func (q *Queue) Full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken >= q.limits.Slots
}

// enqueue takes a free slot and returns nil, or returns a new waiter.
func (q *Queue) enqueue(c Claim) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.admits(c.Quotas) { // a free slot means that the quotas of all waiters are exhausted
		q.take(c.Quotas)
		return nil, nil
	}
	path := pathOf(c)
	address := q.waiting.at(path[:len(path)-1])
	if len(c.Networks) > 0 && address.len() >= q.limits.MaxWaitingPerAddress && !address.evict(path[len(path)-1:]) {
		return nil, ErrFull
	}
	if q.waiting.size >= q.limits.MaxWaiting && !q.waiting.evict(path) {
		return nil, ErrFull
	}
	w := &waiter{quotas: c.Quotas, done: make(chan struct{})}
	q.waiting.add(path, w)
	return w, nil
}

// pathOf returns the path of a claim in the tree of waiters: its networks, the largest first, and
// its user.
func pathOf(c Claim) []string {
	var path []string
	for _, network := range slices.Backward(c.Networks) {
		path = append(path, network.String())
	}
	if len(path) == 0 {
		path = []string{""}
	}
	return append(path, c.User)
}

func (q *Queue) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.leaf != nil {
		w.leaf.remove(w)
		return ctx.Err()
	}
	if w.err == nil { // the slot was granted at the same time
		q.free(w.quotas)
	}
	return ctx.Err()
}

func (q *Queue) leave(quotas []Quota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free(quotas)
}

func (q *Queue) admits(quotas []Quota) bool {
	return q.taken < q.limits.Slots && !slices.ContainsFunc(quotas, func(quota Quota) bool {
		return q.used[quota.Key] >= quota.Max
	})
}

func (q *Queue) take(quotas []Quota) {
	q.taken++
	for _, quota := range quotas {
		q.used[quota.Key]++
	}
}

// free returns a slot, and grants free slots to waiters.
func (q *Queue) free(quotas []Quota) {
	q.taken--
	for _, quota := range quotas {
		if q.used[quota.Key]--; q.used[quota.Key] == 0 {
			delete(q.used, quota.Key)
		}
	}
	for q.taken < q.limits.Slots {
		w := q.waiting.next(q.admits)
		if w == nil {
			return
		}
		q.take(w.quotas)
		w.finish(nil)
	}
}
