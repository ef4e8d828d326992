package throttle

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

// holders counts the attempts of tokens with which living grants were made, wherever they come from.
type holders struct {
	perMinute int
	mu        sync.Mutex
	buckets   *lru.Cache[oauth.Fingerprint, *rate.Limiter]
}

func newHolders(perMinute int) *holders {
	return &holders{perMinute: perMinute, buckets: newCache[oauth.Fingerprint, *rate.Limiter](remembered)}
}

func (h *holders) allow(token oauth.Fingerprint, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	bucket, found := h.buckets.Get(token)
	if !found {
		bucket = rate.NewLimiter(rate.Every(time.Minute/time.Duration(h.perMinute)), h.perMinute)
		h.buckets.Add(token, bucket)
	}
	return bucket.AllowN(now, 1)
}
