package throttle

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	turnsInWait = 10 // of one address, in the time that each of its browsers waits
	turnBurst   = 5
	growth      = 5 // how much faster turns come with each larger network
)

// turns are the attempts of browsers without script that have waited. Without a limit, a thousand waits at once would be as good as a
// thousand proofs of work.
type turns struct {
	every   time.Duration // of one address
	mu      sync.Mutex
	buckets *lru.Cache[netip.Prefix, *rate.Limiter]
}

func newTurns(wait time.Duration) *turns {
	return &turns{every: wait / turnsInWait, buckets: newCache[netip.Prefix, *rate.Limiter](remembered)}
}

// take takes a turn of every network around the address, or none.
func (t *turns) take(by oauth.Requester, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	every := t.every
	var buckets []*rate.Limiter
	for _, network := range by.Networks() {
		bucket := t.bucket(network, every)
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

func (t *turns) bucket(network netip.Prefix, every time.Duration) *rate.Limiter {
	bucket, found := t.buckets.Get(network)
	if !found {
		bucket = rate.NewLimiter(rate.Every(every), turnBurst)
		t.buckets.Add(network, bucket)
	}
	return bucket
}
