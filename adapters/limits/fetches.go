package limits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	fetchWait = 3 * time.Second // for a slot

	// The maximum numbers of fetches that wait for a slot, in total and from one address.
	maxWaitingFetches           = 4096
	maxWaitingFetchesPerAddress = 128
)

// One /24 or /48 may use a fourth of all slots and half of the slots of a domain for unknown
// documents. Otherwise an attacker with a /48 could take all slots at once, and others would wait
// until one of those fetches ends.
const (
	networkDivisor         = 4
	networkDivisorOfDomain = 2
)

// Fetches is an oauth.FetchLimit of this process alone. It is safe for concurrent use.
type Fetches struct {
	*Queue
	Wait time.Duration // for a slot; only tests change it

	limits oauth.Limits
	rates  *fetchRates
}

var _ oauth.FetchLimit = (*Fetches)(nil)

// NewFetches returns the limits on fetches. A zero limit has its default.
func NewFetches(l oauth.Limits) *Fetches {
	l = l.WithDefaults()
	return &Fetches{
		Queue:  NewQueue(l.MaxFetches, maxWaitingFetches),
		Wait:   fetchWait,
		limits: l,
		rates:  newFetchRates(l),
	}
}

var errNoSlot = errors.New("no slot became free in time")

// Acquire implements oauth.FetchLimit.
func (f *Fetches) Acquire(ctx context.Context, fetch oauth.Fetch, now time.Time) (release func(), waited bool,
	err error) {
	if err := f.rates.admits(fetch, now); err != nil {
		return nil, false, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, f.Wait, errNoSlot)
	defer cancel()
	release, waited, err = f.Queue.Acquire(waiting, f.claim(fetch))
	switch {
	case errors.Is(err, ErrFull), err != nil && errors.Is(context.Cause(waiting), errNoSlot):
		return nil, false, fmt.Errorf("%w: %w", oauth.ErrMetadataBudget, cmp.Or(context.Cause(waiting), err))
	case err != nil:
		return nil, false, fmt.Errorf("%w: wait for a slot: %w", oauth.ErrMetadataUnreachable, err)
	}
	return release, waited, nil
}

// Count implements oauth.FetchLimit.
func (f *Fetches) Count(fetch oauth.Fetch, now time.Time) { f.rates.count(fetch, now) }

// claim returns the claim of a fetch. Known documents have separate quotas, so that unknown ones do
// not use them up.
func (f *Fetches) claim(fetch oauth.Fetch) oauth.Claim {
	claim := oauth.Claim{Network: fetch.By.Network()}
	limit := func(slots, waiting int, key ...string) {
		claim.Quotas = append(claim.Quotas,
			oauth.Quota{Key: strings.Join(key, " "), Max: max(slots, 1), MaxWaiting: waiting})
	}
	if fetch.By.Limited() {
		limit(f.limits.MaxFetches, maxWaitingFetchesPerAddress, "waiting", fetch.By.Address())
	}
	if fetch.Slow != "" {
		limit(1, 0, "slow", fetch.Slow)
	}
	domain := domainOf(fetch)
	if fetch.Known {
		limit(f.limits.MaxFetchesPerDomain, 0, "known", domain)
		return claim
	}
	limit(f.limits.MaxFetchesPerDomain, 0, "domain", domain)
	if fetch.By.Limited() {
		network := claim.Network.String()
		limit(f.limits.MaxFetchesPerAddress, 0, "address", fetch.By.Address())
		limit(max(f.limits.MaxFetches/networkDivisor, f.limits.MaxFetchesPerAddress), 0, "network", network)
		limit(f.limits.MaxFetchesPerDomain/networkDivisorOfDomain, 0, "network", network, domain)
	}
	return claim
}

// domainOf returns the registrable domain of the document's host. For an IP address, or a name
// without one such as localhost, it returns the host.
func domainOf(fetch oauth.Fetch) string {
	host := fetch.Host()
	name := oauth.HostOf(host)
	if _, err := netip.ParseAddr(name); err == nil || strings.HasPrefix(host, "[") {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return host
	}
	return domain
}
