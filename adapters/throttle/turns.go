package throttle

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	turnsInWait = 10 // of one address within ProofWait
	turnBurst   = 5
	growth      = 5 // the factor of the rate of each larger network
)

// turns limits the attempts of browsers without script that have waited. Otherwise an attacker would wait for a thousand guesses at once
// instead of doing the work for each.
type turns struct {
	every   time.Duration // of one address
	mu      sync.Mutex
	buckets buckets[netip.Prefix]
}

func newTurns(wait time.Duration) *turns {
	return &turns{every: wait / turnsInWait, buckets: newBuckets[netip.Prefix]()}
}

// take takes a turn of every network around the address, or none.
func (t *turns) take(by oauth.Requester, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	every := t.every
	var buckets []*rate.Limiter
	for _, network := range by.Networks() {
		bucket := t.buckets.of(network, every, turnBurst)
		if bucket.TokensAt(now) < 1 {
			return false
		}
		buckets = append(buckets, bucket)
		every /= growth
	}
	for _, bucket := range buckets {
		bucket.AllowN(now, 1)
	}
	return true
}
