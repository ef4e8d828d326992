package throttle

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	turnEvery = 2 * time.Second // of one address
	maxTurns  = 60              // of one address that wait at once
)

// turns lets browsers without script wait for a turn: each address has one every turnEvery, and none before the shortest wait. Without
// the queue, a thousand waits at once would be as good as a thousand proofs.
type turns struct {
	shortest time.Duration
	mu       sync.Mutex
	last     *lru.Cache[string, time.Time]
}

func newTurns(shortest time.Duration) *turns {
	return &turns{shortest: shortest, last: newCache[string, time.Time](remembered)}
}

func (t *turns) next(address string, now time.Time) (wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := now.Add(t.shortest)
	limit := at.Add(maxTurns * turnEvery)
	if last, found := t.last.Get(address); found && !last.After(limit) && at.Before(last.Add(turnEvery)) { // a later one is of a clock that was ahead
		at = last.Add(turnEvery)
	}
	if at.After(limit) {
		return 0, false
	}
	t.last.Add(address, at)
	return at.Sub(now), true
}
