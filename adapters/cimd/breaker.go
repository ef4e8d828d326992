package cimd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/sony/gobreaker/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	maxTargets  = 8192 // the least recently used one is forgotten
	maxTimeouts = 3    // in a row, before the pause
)

// breakers has a circuit breaker for each target that timed out, by breakerKey.
type breakers struct {
	pause time.Duration
	slow  *lru.Cache[string, *gobreaker.CircuitBreaker[struct{}]]
}

func newBreakers(pause time.Duration) breakers {
	return breakers{pause, newLRU[string, *gobreaker.CircuitBreaker[struct{}]](maxTargets)}
}

// check reports whether the last fetch timed out. During a pause it returns oauth.ErrMetadataSlow.
func (b breakers) check(key string) (slow bool, err error) {
	known, slow := b.slow.Get(key)
	if slow && known.State() == gobreaker.StateOpen {
		return true, oauth.RetryableAfter(b.pause,
			fmt.Errorf("%w: %d times in a row", oauth.ErrMetadataSlow, maxTimeouts))
	}
	return slow, nil
}

// record records the result of a fetch.
func (b breakers) record(key string, err error) {
	if !isTimeout(err) {
		b.slow.Remove(key)
		return
	}
	created := gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     b.pause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= maxTimeouts },
	})
	known, found, _ := b.slow.PeekOrAdd(key, created)
	if !found {
		known = created
	}
	_, _ = known.Execute(func() (struct{}, error) { return struct{}{}, err })
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// breakerKey returns the key under which timeouts count: the URL of a known document; otherwise the
// host with the network of the requester, or the host alone if no limits apply to the requester.
// With the network, an attacker who requests slow paths of a host pauses it for the attacker's
// network only. It is the host and not the domain, because one slow tenant must not block the
// others.
func breakerKey(f oauth.Fetch) string {
	switch {
	case f.Known:
		return f.At.String()
	case f.By.Limited():
		return f.By.Network().String() + " " + f.Host()
	}
	return f.Host()
}
