package limits

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/oauth"
)

// guaranteed is the number of unknown documents of a domain that each address and each network may
// fetch in a minute, even if the limit of the address or of the domain is reached.
const guaranteed = 3

// fetchRates counts fetches of unknown documents in windows of a minute. Each process has its own
// counters, so that fetches need no database; N replicas fetch N times as much. To evict the
// counter of an address at a domain, an attacker has to fetch from thousands of other domains, four
// at a time, and the limit of the domain still applies.
type fetchRates struct {
	limits             oauth.Limits
	mu                 sync.Mutex
	requesters         *lru.Cache[string, *window]
	requestersAtDomain *lru.Cache[addressAtDomain, *window]
	domains            *lru.Cache[string, *window]
	networks           *lru.Cache[networkAtDomain, *window]
}

type addressAtDomain struct{ domain, address string }

type networkAtDomain struct {
	domain  string
	network netip.Prefix
}

// window counts fetches in a minute.
type window struct {
	start    time.Time
	fetches  int
	networks int // that have fetched from a domain
}

func (w *window) contains(now time.Time) bool {
	since := now.Sub(w.start)
	return 0 <= since && since < time.Minute
}

// left returns the time until the window is over.
func (w *window) left(now time.Time) time.Duration { return time.Minute - now.Sub(w.start) }

func newFetchRates(l oauth.Limits) *fetchRates {
	return &fetchRates{
		limits: l, requesters: newCache[string, *window](maxKeys),
		requestersAtDomain: newCache[addressAtDomain, *window](maxKeys),
		domains:            newCache[string, *window](maxKeys), networks: newCache[networkAtDomain, *window](maxKeys),
	}
}

// admits returns oauth.ErrMetadataBudget if the address or the domain has no fetch left. Known
// documents are always admitted.
func (r *fetchRates) admits(f oauth.Fetch, now time.Time) error {
	if f.Known {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	address, domain := r.addressWait(f, now), r.domainWait(f, now)
	switch {
	case address == 0 && domain == 0:
		return nil
	case address > domain:
		return oauth.RetryableAfter(address, fmt.Errorf("%w: %d in a minute for one address, and %d from this domain",
			oauth.ErrMetadataBudget, r.limits.MaxFetchesPerMinuteAndAddress, guaranteed))
	}
	return oauth.RetryableAfter(domain,
		fmt.Errorf("%w: %d in a minute from one domain", oauth.ErrMetadataBudget,
			r.limits.MaxFetchesPerMinuteAndDomain))
}

// addressWait returns how long the address has to wait because it has used its fetches and those
// that are guaranteed for the domain. The guarantee is for others behind the same address as an
// attacker who fetches from other domains.
func (r *fetchRates) addressWait(f oauth.Fetch, now time.Time) time.Duration {
	if !f.By.Limited() {
		return 0
	}
	all, here := r.ofAddress(f, now)
	if all.fetches < r.limits.MaxFetchesPerMinuteAndAddress || here.fetches < guaranteed {
		return 0
	}
	return min(all.left(now), here.left(now))
}

// domainWait returns how long the network has to wait because the fetches of the domain and its
// share of them are used. The share is for other networks than that of an attacker.
func (r *fetchRates) domainWait(f oauth.Fetch, now time.Time) time.Duration {
	all, own := r.ofDomain(f, now)
	share := max(guaranteed, r.limits.MaxFetchesPerMinuteAndDomain/max(all.networks, 1))
	if all.fetches < r.limits.MaxFetchesPerMinuteAndDomain || own.fetches < share {
		return 0
	}
	return min(all.left(now), own.left(now))
}

// count counts a fetch.
func (r *fetchRates) count(f oauth.Fetch, now time.Time) {
	if f.Known {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.By.Limited() {
		all, here := r.ofAddress(f, now)
		all.fetches++
		here.fetches++
	}
	all, own := r.ofDomain(f, now)
	all.fetches++
	if own.fetches++; own.fetches == 1 {
		all.networks++
	}
}

func (r *fetchRates) ofAddress(f oauth.Fetch, now time.Time) (all, here *window) {
	address := f.By.Address()
	return windowOf(r.requesters, address, now),
		windowOf(r.requestersAtDomain, addressAtDomain{domainOf(f), address}, now)
}

func (r *fetchRates) ofDomain(f oauth.Fetch, now time.Time) (all, own *window) {
	return windowOf(r.domains, domainOf(f), now),
		windowOf(r.networks, networkAtDomain{domainOf(f), f.By.Network()}, now)
}

func windowOf[K comparable](windows *lru.Cache[K, *window], key K, now time.Time) *window {
	if known, ok := windows.Get(key); ok && known.contains(now) {
		return known
	}
	known := &window{start: now}
	windows.Add(key, known)
	return known
}
