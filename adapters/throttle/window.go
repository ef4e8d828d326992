package throttle

import (
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// pendingWait is how long to stay away while others of the same window are being judged.
const pendingWait = time.Second

// window counts until it is over, which it is a fixed time after its first count.
type window struct {
	limit   int
	length  time.Duration
	count   int
	pending int // not yet known whether they count
	ends    time.Time
}

// wait opens a new window when the last one is over, and returns how long a full one still lasts. One that lasts longer than it
// may was opened while the clock was ahead.
func (w *window) wait(now time.Time) time.Duration {
	if left := w.ends.Sub(now); left <= 0 || left > w.length {
		w.count, w.ends = 0, now.Add(w.length)
	}
	switch {
	case w.count >= w.limit:
		return w.ends.Sub(now)
	case w.count+w.pending >= w.limit:
		return pendingWait
	}
	return 0
}

func remember(cache *lru.Cache[string, *window], key string, fresh window) *window {
	if known, found := cache.Get(key); found {
		return known
	}
	cache.Add(strings.Clone(key), &fresh) // which may be a part of a whole ticket
	return &fresh
}

// forget takes a window away that is no different from a fresh one, so that memory is not for those who are right.
func forget(cache *lru.Cache[string, *window], key string) {
	if known, found := cache.Peek(key); found && known.count == 0 && known.pending == 0 {
		cache.Remove(key)
	}
}

func newWindows() *lru.Cache[string, *window] {
	cache, _ := lru.New[string, *window](remembered) // fails only for a size below one
	return cache
}
