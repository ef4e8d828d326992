package throttle

import (
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// holders limits the attempts with each token that has living grants, whichever address they come from.
type holders struct {
	perMinute int
	mu        sync.Mutex
	buckets   buckets[oauth.Fingerprint]
}

func newHolders(perMinute int) *holders {
	return &holders{perMinute: perMinute, buckets: newBuckets[oauth.Fingerprint]()}
}

func (h *holders) allow(token oauth.Fingerprint, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buckets.of(token, time.Minute/time.Duration(h.perMinute), h.perMinute).AllowN(now, 1)
}
