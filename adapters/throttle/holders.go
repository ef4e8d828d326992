package throttle

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

// holderRate is how many attempts in a minute a token with living grants has without a proof of work, wherever they come from.
const holderRate = 30

// holders counts the attempts of tokens with which living grants were made.
type holders struct {
	mu      sync.Mutex
	buckets *lru.Cache[oauth.Fingerprint, *rate.Limiter]
}

func newHolders() *holders {
	return &holders{buckets: newCache[oauth.Fingerprint, *rate.Limiter](remembered)}
}

func (h *holders) allow(token oauth.Fingerprint, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	bucket, found := h.buckets.Get(token)
	if !found {
		bucket = rate.NewLimiter(rate.Every(time.Minute/holderRate), holderRate)
		h.buckets.Add(token, bucket)
	}
	return bucket.AllowN(now, 1)
}
