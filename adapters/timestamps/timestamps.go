// Package timestamps stores the time of the last event of each key, in bounded memory. Start
// reading at Cache.
package timestamps

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Cache maps keys to times, and evicts the least recently used key. It is safe for concurrent use.
type Cache[K comparable] struct{ times *lru.Cache[K, time.Time] }

// New returns an empty cache. size is positive.
func New[K comparable](size int) Cache[K] {
	times, _ := lru.New[K, time.Time](size) // fails only for a size that is not positive
	return Cache[K]{times}
}

// Add sets the time of a key.
func (c Cache[K]) Add(key K, at time.Time) { c.times.Add(key, at) }

// Within reports whether the time of a key is less than interval before now. It ignores a time
// after now, which was added while the clock was ahead.
func (c Cache[K]) Within(key K, interval time.Duration, now time.Time) bool {
	at, found := c.times.Get(key)
	age := now.Sub(at)
	return found && 0 <= age && age < interval
}

// Len returns the number of keys.
func (c Cache[K]) Len() int { return c.times.Len() }
