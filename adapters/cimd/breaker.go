package cimd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// After maxTimeouts in a row, a target is not tried for minPause. Each later timeout doubles the
// pause, up to maxPause.
const (
	maxTargets  = 8192 // the least recently used one is evicted
	maxTimeouts = 3
	minPause    = 10 * time.Second
	maxPause    = 5 * time.Minute
)

// breaker is a circuit breaker for targets that time out, by breakerKey. After a pause only
// one fetch at a time probes the target. github.com/sony/gobreaker cannot use the clock of the
// directory.
type breaker struct {
	mu   sync.Mutex
	slow *lru.Cache[string, slowTarget]
}

type slowTarget struct {
	timeouts    int
	pausedUntil time.Time
}

func newBreaker() *breaker { return &breaker{slow: newLRU[string, slowTarget](maxTargets)} }

// check reports whether the last fetch timed out. During a pause it returns oauth.ErrMetadataSlow.
func (b *breaker) check(key string, now time.Time) (slow bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, slow := b.slow.Get(key)
	if left := known.pausedUntil.Sub(now); 0 < left && left <= maxPause {
		return true, oauth.RetryableAfter(left,
			fmt.Errorf("%w: %d times in a row", oauth.ErrMetadataSlow, known.timeouts))
	}
	return slow, nil
}

// fetched records the result of a fetch.
func (b *breaker) fetched(key string, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !isTimeout(err) {
		b.slow.Remove(key)
		return
	}
	known, _ := b.slow.Get(key)
	known.timeouts++
	if more := known.timeouts - maxTimeouts; more >= 0 {
		known.pausedUntil = now.Add(min(minPause<<min(more, 10), maxPause))
	}
	b.slow.Add(key, known)
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// breakerKey returns the key under which the breaker counts the fetch. For an unknown document it
// is the host with the network of the requester: an attacker who requests slow paths of a host
// pauses it for the attacker's network only. It is the host and not the domain, because one slow
// tenant of a domain must not block the others. MaxFetchesPerDomain bounds the slow hosts of one
// domain, and the quotas of networks bound slow domains. Each known document has a separate key.
func breakerKey(f oauth.Fetch) string {
	switch {
	case f.Known:
		return f.At.String()
	case f.By.Limited():
		return f.By.Network().String() + " " + f.Host()
	}
	return f.Host()
}
