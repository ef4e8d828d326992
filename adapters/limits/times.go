package limits

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// times holds the time of the last event of each key, and evicts the least recently used one. An
// expirable LRU cannot use the clock of the server.
type times[K comparable] struct{ kept *lru.Cache[K, time.Time] }

func newTimes[K comparable]() times[K] { return times[K]{newCache[K, time.Time](maxKeys)} }

func (t times[K]) add(key K, at time.Time) { t.kept.Add(key, at) }

// within reports whether the time of a key is less than interval before now. It ignores a time
// after now, which was added while the clock was ahead.
func (t times[K]) within(key K, interval time.Duration, now time.Time) bool {
	at, found := t.kept.Get(key)
	age := now.Sub(at)
	return found && 0 <= age && age < interval
}
