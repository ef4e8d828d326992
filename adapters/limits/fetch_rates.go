package limits

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// guaranteed is the number of unknown documents of a domain that each address and each network may
// fetch in a minute, even if the limit of the address or of the domain is reached: others behind
// the address of an attacker and in other networks need few.
const guaranteed = 3

// fetchRates limits fetches of unknown documents. Each process counts for itself, so that fetches
// need no database; N replicas fetch N times as much. To evict the counter of an address at a
// domain, an attacker has to fetch from thousands of other domains, four at a time, and the limit
// of the domain still applies.
type fetchRates struct {
	limits            oauth.Limits
	addresses         *Rates[string]
	addressesAtDomain *Rates[addressAtDomain]
	domains           *Rates[string]
	networksAtDomain  *Rates[networkAtDomain]
}

type addressAtDomain struct{ domain, address string }

type networkAtDomain struct {
	domain  string
	network netip.Prefix
}

func newFetchRates(l oauth.Limits) *fetchRates {
	return &fetchRates{
		limits:            l,
		addresses:         perMinute[string](l.MaxFetchesPerMinuteAndAddress),
		addressesAtDomain: perMinute[addressAtDomain](guaranteed),
		domains:           perMinute[string](l.MaxFetchesPerMinuteAndDomain),
		networksAtDomain:  perMinute[networkAtDomain](guaranteed),
	}
}

// admits returns oauth.ErrMetadataBudget if the address or the domain has no fetch left. Known
// documents are always admitted.
func (r *fetchRates) admits(f oauth.Fetch, now time.Time) error {
	if f.Known {
		return nil
	}
	at := domainOf(f)
	address, domain := time.Duration(0), min(r.domains.wait(at, now),
		r.networksAtDomain.wait(networkAtDomain{at, f.By.Network()}, now))
	if f.By.Limited() {
		address = min(r.addresses.wait(f.By.Address(), now),
			r.addressesAtDomain.wait(addressAtDomain{at, f.By.Address()}, now))
	}
	switch {
	case address == 0 && domain == 0:
		return nil
	case address > domain:
		return oauth.RetryableAfter(address, fmt.Errorf("%w: %d in a minute for one address, and %d from this domain",
			oauth.ErrMetadataBudget, r.limits.MaxFetchesPerMinuteAndAddress, guaranteed))
	}
	return oauth.RetryableAfter(domain, fmt.Errorf("%w: %d in a minute from one domain, and %d for this network",
		oauth.ErrMetadataBudget, r.limits.MaxFetchesPerMinuteAndDomain, guaranteed))
}

// count counts a fetch.
func (r *fetchRates) count(f oauth.Fetch, now time.Time) {
	if f.Known {
		return
	}
	at := domainOf(f)
	if f.By.Limited() {
		r.addresses.Take(f.By.Address(), now)
		r.addressesAtDomain.Take(addressAtDomain{at, f.By.Address()}, now)
	}
	r.domains.Take(at, now)
	r.networksAtDomain.Take(networkAtDomain{at, f.By.Network()}, now)
}
