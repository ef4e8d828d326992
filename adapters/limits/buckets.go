package limits

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// buckets holds a rate limiter for each key, and evicts the least recently used one.
type buckets[K comparable] struct{ kept *lru.Cache[K, *rate.Limiter] }

func newBuckets[K comparable]() buckets[K] { return buckets[K]{newCache[K, *rate.Limiter](cacheSize)} }

// of returns the limiter of a key. A new key gets a full one.
func (b buckets[K]) of(key K, every time.Duration, burst int) *rate.Limiter {
	known, found := b.kept.Get(key)
	if !found {
		known = rate.NewLimiter(rate.Every(every), burst)
		b.kept.Add(key, known)
	}
	return known
}
