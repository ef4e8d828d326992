package limits

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	knownFor = 30 * 24 * time.Hour
	// addressesPerToken bounds the addresses that one right token makes known, so that an attacker
	// with a valid token cannot exempt thousands of addresses from the limit of all networks.
	addressesPerToken = 16
)

// knownAddresses are the addresses from which a right token was pasted within knownFor.
type knownAddresses struct {
	mu        sync.Mutex
	addresses times[netip.Prefix]
	byToken   *lru.Cache[oauth.Fingerprint, map[netip.Prefix]bool]
}

func newKnownAddresses() *knownAddresses {
	return &knownAddresses{addresses: newTimes[netip.Prefix](),
		byToken: newCache[oauth.Fingerprint, map[netip.Prefix]bool](maxKeys)}
}

func (t *knownAddresses) add(address netip.Prefix, token oauth.Fingerprint, now time.Time) {
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
	t.addresses.add(address, now)
}

func (t *knownAddresses) has(address netip.Prefix, now time.Time) bool {
	return t.addresses.within(address, knownFor, now)
}
