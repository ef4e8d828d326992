package throttle

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

const failuresWindow = time.Minute

// Failures is an oauth.FailureLimit of this process alone. It is safe for concurrent use.
type Failures struct {
	limit int

	mu        sync.Mutex
	addresses *lru.Cache[string, *window]
}

var _ oauth.FailureLimit = (*Failures)(nil)

// NewFailures allows an address that many failures in a minute.
func NewFailures(limit int) *Failures { return &Failures{limit: limit, addresses: newWindows()} }

// Failed implements oauth.FailureLimit.
func (f *Failures) Failed(address string, now time.Time) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := remember(f.addresses, address, window{limit: f.limit, length: failuresWindow})
	wait = w.wait(now)
	w.count++
	return wait
}
