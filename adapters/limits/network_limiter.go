package limits

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	admittedPerWait = 10 // browsers without script that an address has admitted within ProofWait
	admittedBurst   = 5
	lookUpInterval  = time.Second // for one address
	lookUpBurst     = 10
	growth          = 5 // factor between the rates of a network and of the next larger one
)

// networkLimiter limits the rate of events from each address and from the networks around it.
// Larger networks have higher rates.
type networkLimiter struct {
	every   time.Duration // interval of events from one address
	burst   int
	mu      sync.Mutex
	buckets buckets[netip.Prefix]
}

func newNetworkLimiter(every time.Duration, burst int) *networkLimiter {
	return &networkLimiter{every: every, burst: burst, buckets: newBuckets[netip.Prefix]()}
}

// allow takes a token from the bucket of every network around the address, or from none.
func (t *networkLimiter) allow(by oauth.Requester, now time.Time) bool {
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
