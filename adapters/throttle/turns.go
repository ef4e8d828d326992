package throttle

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	turnsInWait  = 10 // of browsers without script, of one address within ProofWait
	turnBurst    = 5
	lookUpEvery  = time.Second // of one address
	lookUpsBurst = 10
	growth       = 5 // the factor of the rate of each larger network
)

// turns is a rate of something by network: each larger network around an address has a higher rate.
type turns struct {
	every   time.Duration // of one address
	burst   int
	mu      sync.Mutex
	buckets buckets[netip.Prefix]
}

func newTurns(every time.Duration, burst int) *turns {
	return &turns{every: every, burst: burst, buckets: newBuckets[netip.Prefix]()}
}

// take takes a turn of every network around the address, or none.
func (t *turns) take(by oauth.Requester, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	every := t.every
	var buckets []*rate.Limiter
	for _, network := range by.Networks() {
		bucket := t.buckets.of(network, every, t.burst)
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
