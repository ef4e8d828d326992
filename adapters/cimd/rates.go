package cimd

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// maxMetered is the number of keys whose rate is kept; the least recently used is forgotten first.
const maxMetered = 8192

// guaranteed is how many unknown documents of a domain each network may fetch in a minute, even when many others fetch from it.
const guaranteed = 3

// rates counts fetches of unknown documents, in windows of a minute. Each process counts for itself, so that fetches need no database; N
// replicas fetch N times as much.
type rates struct {
	limits     oauth.Limits
	mu         sync.Mutex
	requesters *lru.Cache[string, *window]
	domains    *lru.Cache[string, *window]
	networks   *lru.Cache[networkAtDomain, *window]
}

type networkAtDomain struct {
	domain  string
	network netip.Prefix
}

// window counts the fetches of a minute.
type window struct {
	start    time.Time
	fetches  int
	networks int // that have fetched from a domain
}

func (w *window) contains(now time.Time) bool {
	since := now.Sub(w.start)
	return 0 <= since && since < time.Minute
}

func newRates(l oauth.Limits) *rates {
	return &rates{
		limits: l, requesters: newLRU[string, *window](maxMetered), domains: newLRU[string, *window](maxMetered),
		networks: newLRU[networkAtDomain, *window](maxMetered),
	}
}

// admits refuses a requester that has spent the fetches of a minute and, once the fetches of the domain are spent, networks that have used
// their part of them. So an attacker in one network cannot use up what other networks may fetch. Known documents are always admitted.
func (r *rates) admits(t target, now time.Time) error {
	if t.known {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.requester.Limited() && windowOf(r.requesters, t.requester.Address(), now).fetches >= r.limits.MaxFetchesPerMinuteAndAddress {
		return fmt.Errorf("%w: %d in a minute for one address", oauth.ErrMetadataBudget, r.limits.MaxFetchesPerMinuteAndAddress)
	}
	domain, own := windowOf(r.domains, t.domain(), now), windowOf(r.networks, networkAtDomain{t.domain(), t.network()}, now)
	part := max(guaranteed, r.limits.MaxFetchesPerMinuteAndDomain/max(domain.networks, 1))
	if domain.fetches >= r.limits.MaxFetchesPerMinuteAndDomain && own.fetches >= part {
		return fmt.Errorf("%w: %d in a minute from one domain", oauth.ErrMetadataBudget, r.limits.MaxFetchesPerMinuteAndDomain)
	}
	return nil
}

// spend counts a fetch.
func (r *rates) spend(t target, now time.Time) {
	if t.known {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.requester.Limited() {
		windowOf(r.requesters, t.requester.Address(), now).fetches++
	}
	domain, own := windowOf(r.domains, t.domain(), now), windowOf(r.networks, networkAtDomain{t.domain(), t.network()}, now)
	domain.fetches++
	if own.fetches++; own.fetches == 1 {
		domain.networks++
	}
}

func windowOf[K comparable](windows *lru.Cache[K, *window], key K, now time.Time) *window {
	if known, ok := windows.Get(key); ok && known.contains(now) {
		return known
	}
	known := &window{start: now}
	windows.Add(key, known)
	return known
}
