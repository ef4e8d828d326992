package limits

import (
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// tokenLimiter limits the attempts with each token, from all addresses together.
type tokenLimiter struct {
	perMinute int
	mu        sync.Mutex
	buckets   buckets[oauth.Fingerprint]
}

func newTokenLimiter(perMinute int) *tokenLimiter {
	return &tokenLimiter{perMinute: perMinute, buckets: newBuckets[oauth.Fingerprint]()}
}

func (h *tokenLimiter) allow(token oauth.Fingerprint, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buckets.of(token, time.Minute/time.Duration(h.perMinute), h.perMinute).AllowN(now, 1)
}
