// Package fairqueue shares a bounded number of places among many users, in turns.
package fairqueue

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
)

// ErrFull reports that too many claims wait already.
var ErrFull = errors.New("too many requests are waiting")

// Claim is a request for a place.
type Claim struct {
	// Networks are the networks around the address of the claim, the smallest first, as oauth.Requester.Networks returns them. Claims without
	// networks take turns as one network, in which any number may wait.
	Networks []netip.Prefix
	// User is the innermost level of turns, for example the token that a claim is about. Claims of an address without users are in one line.
	User string
	// Shares limit how many places the claims with the same key hold at once.
	Shares []Share
}

// Share is a key with the number of places, at least 1, that its claims may hold when this claim gets one.
type Share struct {
	Key string
	Max int
}

// Limits bounds a queue.
type Limits struct {
	Places            int
	Waiting           int // in all
	WaitingPerAddress int // in one smallest network
}

// Queue hands out places. It is safe for concurrent use and starts no goroutines.
//
// When a place becomes free, networks take turns: first the largest networks with waiters, then the networks inside the chosen one, down
// to the smallest, then the users of an address. The oldest waiter of a user is first. So an attacker who sends requests from a /48 delays other networks by one turn,
// however many addresses the /48 has. The queue skips a waiter whose shares are used up.
type Queue struct {
	limits  Limits
	mu      sync.Mutex
	taken   int
	shares  map[string]int // places held by key
	waiting *network
}

// New returns a queue whose places are all free.
func New(l Limits) *Queue {
	return &Queue{limits: l, shares: map[string]int{}, waiting: newNetwork(nil, "")}
}

// Place is a place in use.
type Place struct {
	// Waited reports whether the claim had to wait.
	Waited bool

	leave func()
}

// Leave frees the place. Further calls do nothing.
func (p *Place) Leave() { p.leave() }

// Enter waits for a place until ctx ends. It returns ErrFull when too many claims wait already. When the queue is full, the newest waiter
// of the network with most waiters gets ErrFull, and the newcomer waits instead. The same holds for the users of an address.
func (q *Queue) Enter(ctx context.Context, c Claim) (*Place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := q.join(c)
	if err != nil {
		return nil, err
	}
	waited := w != nil
	if waited {
		if err := q.await(ctx, w); err != nil {
			return nil, err
		}
	}
	return &Place{Waited: waited, leave: sync.OnceFunc(func() { q.leave(c.Shares) })}, nil
}

// Waiting returns the number of waiters.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.size
}

// Full reports whether all places are taken.
func (q *Queue) Full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken >= q.limits.Places
}

// join takes a place and returns nil, or returns a new waiter.
func (q *Queue) join(c Claim) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.admits(c.Shares) { // all waiters have used up their shares, or they would hold the place
		q.take(c.Shares)
		return nil, nil
	}
	path := pathOf(c)
	address := q.waiting.at(path[:len(path)-1])
	if len(c.Networks) > 0 && address.len() >= q.limits.WaitingPerAddress && !address.makeRoom(path[len(path)-1:]) {
		return nil, ErrFull
	}
	if q.waiting.size >= q.limits.Waiting && !q.waiting.makeRoom(path) {
		return nil, ErrFull
	}
	w := &waiter{shares: c.Shares, settled: make(chan struct{})}
	q.waiting.add(path, w)
	return w, nil
}

// pathOf returns the networks of a claim, the largest first, and its user.
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

func (q *Queue) await(ctx context.Context, w *waiter) error {
	select {
	case <-w.settled:
		return w.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.leaf != nil {
		w.leaf.remove(w)
		return ctx.Err()
	}
	if w.err == nil { // the place was granted at the same time
		q.free(w.shares)
	}
	return ctx.Err()
}

func (q *Queue) leave(shares []Share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free(shares)
}

func (q *Queue) admits(shares []Share) bool {
	return q.taken < q.limits.Places && !slices.ContainsFunc(shares, func(s Share) bool { return q.shares[s.Key] >= s.Max })
}

func (q *Queue) take(shares []Share) {
	q.taken++
	for _, s := range shares {
		q.shares[s.Key]++
	}
}

// free gives a place back, and grants free places to waiters.
func (q *Queue) free(shares []Share) {
	q.taken--
	for _, s := range shares {
		if q.shares[s.Key]--; q.shares[s.Key] == 0 {
			delete(q.shares, s.Key)
		}
	}
	for q.taken < q.limits.Places {
		w := q.waiting.next(q.admits)
		if w == nil {
			return
		}
		q.take(w.shares)
		w.settle(nil)
	}
}
