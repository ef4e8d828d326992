package throttle

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/adapters/timestamps"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	trustedFor = 30 * 24 * time.Hour
	// addressesPerToken bounds the addresses that one right token makes known, so that an attacker with a token of their own does not lift
	// the limit of all networks for a thousand addresses.
	addressesPerToken = 16
)

// trust knows the addresses from which a right token was pasted.
type trust struct {
	mu        sync.Mutex
	addresses timestamps.Cache[netip.Prefix]
	byToken   *lru.Cache[oauth.Fingerprint, map[netip.Prefix]bool]
}

func newTrust() *trust {
	return &trust{addresses: timestamps.New[netip.Prefix](remembered), byToken: newCache[oauth.Fingerprint, map[netip.Prefix]bool](remembered)}
}

func (t *trust) add(address netip.Prefix, token oauth.Fingerprint, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, found := t.byToken.Get(token)
	if !found {
		known = map[netip.Prefix]bool{}
		t.byToken.Add(token, known)
	}
	if !known[address] && len(known) >= addressesPerToken {
		return
	}
	known[address] = true
	t.addresses.Add(address, now)
}

func (t *trust) has(address netip.Prefix, now time.Time) bool {
	return t.addresses.Within(address, trustedFor, now)
}
