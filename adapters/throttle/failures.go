package throttle

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// The limit of D31.
const (
	failuresPerAddress = 60
	failuresWindow     = time.Minute
)

// Failures is an oauth.FailureLimit of this process alone. It is safe for concurrent use.
type Failures struct {
	mu        sync.Mutex
	addresses *lru.Cache[string, *window]
}

var _ oauth.FailureLimit = (*Failures)(nil)

// NewFailures starts with nobody having failed.
func NewFailures() *Failures { return &Failures{addresses: newWindows()} }

// Wait implements oauth.FailureLimit.
func (f *Failures) Wait(address string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.addresses.Get(address)
	if !found {
		return 0
	}
	return known.wait(now)
}

// Failed implements oauth.FailureLimit.
func (f *Failures) Failed(address string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := remember(f.addresses, address, window{limit: failuresPerAddress, length: failuresWindow})
	w.wait(now)
	w.count++
}
