package throttle

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// buckets are rate limiters by key; the least recently used is forgotten first.
type buckets[K comparable] struct{ kept *lru.Cache[K, *rate.Limiter] }

func newBuckets[K comparable]() buckets[K] { return buckets[K]{newCache[K, *rate.Limiter](remembered)} }

// of returns the limiter of a key, a full one for a new key.
func (b buckets[K]) of(key K, every time.Duration, burst int) *rate.Limiter {
	known, found := b.kept.Get(key)
	if !found {
		known = rate.NewLimiter(rate.Every(every), burst)
		b.kept.Add(key, known)
	}
	return known
}
