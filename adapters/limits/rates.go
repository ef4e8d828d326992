package limits

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/application/cache"
	"github.com/pasteport/pasteport/domain/quota"
)

const maxKeys = 10_000 // of a cache, other than that of right tokens

// maxClockDifference is the tolerated difference between the clocks of replicas, and between the
// times that concurrent requests have read.
const maxClockDifference = 10 * time.Second

// Rates is a quota.RateLimit of this process alone, with a token bucket for each Rate.Of. It evicts
// the least recently used buckets, and is safe for concurrent use.
type Rates struct {
	mu      sync.Mutex
	buckets *cache.LRU[string, *bucket]
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

// NewRates returns a limit that has counted nothing.
func NewRates() *Rates { return &Rates{buckets: cache.New[string, *bucket](maxKeys)} }

// Take implements quota.RateLimit. Its wait for more Events than PerMinute is finite, although a
// bucket never has that many tokens.
func (r *Rates) Take(now time.Time, rates ...quota.Rate) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	buckets := make([]*bucket, 0, len(rates))
	for _, one := range rates {
		b := r.bucket(one, now)
		missing := max(0, float64(one.Events)-b.TokensAt(now))
		wait = max(wait, time.Duration(missing/float64(b.Limit())*float64(time.Second)))
		buckets = append(buckets, b)
	}
	if wait > 0 {
		return wait
	}
	for i, b := range buckets {
		b.AllowN(now, rates[i].Events)
	}
	return 0
}

// bucket returns the bucket of a rate. It makes a new one if the clock was set back since the last
// use, because a limiter gains no tokens until the clock has caught up.
func (r *Rates) bucket(one quota.Rate, now time.Time) *bucket {
	b, found := r.buckets.Get(one.Of)
	if !found || b.used.Sub(now) > maxClockDifference {
		perSecond := rate.Limit(float64(one.PerMinute) / time.Minute.Seconds())
		b = &bucket{Limiter: rate.NewLimiter(perSecond, one.PerMinute)}
		r.buckets.Add(one.Of, b)
	}
	b.used = now
	return b
}
