package cimd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/pasteport/pasteport/domain/fairqueue"
	"github.com/pasteport/pasteport/domain/oauth"
)

// The maximum numbers of requests that wait for a slot, in total and from one address.
const (
	maxWaiting           = 4096
	maxWaitingPerAddress = 128
)

// One /24 or /48 may use a fourth of all slots and half of the slots of a domain for unknown
// documents. Otherwise an attacker with a /48 could take all slots at once, and others would wait
// until one of those fetches ends.
const (
	networkDivisor         = 4
	networkDivisorOfDomain = 2
)

// budget limits the fetches that anonymous requests can cause.
type budget struct {
	limits  oauth.Limits
	wait    time.Duration // for a slot
	queue   *fairqueue.Queue
	rates   *rates
	breaker *breaker
}

func newBudget(l oauth.Limits, wait time.Duration) *budget {
	return &budget{
		limits:  l,
		wait:    wait,
		rates:   newRates(l),
		breaker: newBreaker(),
		queue: fairqueue.New(fairqueue.Limits{Slots: l.MaxFetches, MaxWaiting: maxWaiting,
			MaxWaitingPerAddress: maxWaitingPerAddress}),
	}
}

// target is a document to fetch for a requester.
type target struct {
	at        oauth.ClientID
	requester oauth.Requester
	known     bool // it was fetched before, or belongs to a client in use
}

func (t target) host() string { return strings.TrimSuffix(strings.ToLower(t.at.Host()), ":443") }

// domain returns the registrable domain of the host. For an IP address, or a name without one such
// as localhost, it returns the host.
func (t target) domain() string {
	host := t.host()
	name, _, _ := strings.Cut(host, ":")
	if _, err := netip.ParseAddr(name); err == nil || strings.HasPrefix(host, "[") {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return host
	}
	return domain
}

// network returns the largest network of the requester, the zero value for one without limits.
func (t target) network() netip.Prefix {
	networks := t.requester.Networks()
	if len(networks) == 0 {
		return netip.Prefix{}
	}
	return networks[len(networks)-1]
}

// breakerKey returns the key under which the breaker counts the fetch. For an unknown document it
// is the host with the network of the requester: an attacker who requests slow paths of a host
// pauses it for the attacker's network only. It is the host and not the domain, because one slow
// tenant of a domain must not block the others. MaxFetchesPerDomain bounds the slow hosts of one
// domain, and the shares of networks bound slow domains. Each known document has a separate key.
func (t target) breakerKey() string {
	if t.known {
		return t.at.String()
	}
	if t.requester.Limited() {
		return t.network().String() + " " + t.host()
	}
	return t.host()
}

// claim returns the claim of a fetch. Known documents have separate shares, so that unknown ones do
// not use them up.
func (b *budget) claim(t target, slow bool) fairqueue.Claim {
	claim := fairqueue.Claim{Networks: t.requester.Networks()}
	share := func(limit int, key ...string) {
		claim.Quotas = append(claim.Quotas, fairqueue.Quota{Key: strings.Join(key, " "), Max: max(limit, 1)})
	}
	if slow {
		share(1, "slow", t.breakerKey())
	}
	if t.known {
		share(b.limits.MaxFetchesPerDomain, "known", t.domain())
		return claim
	}
	share(b.limits.MaxFetchesPerDomain, "domain", t.domain())
	if t.requester.Limited() {
		network := t.network().String()
		share(b.limits.MaxFetchesPerAddress, "address", t.requester.Address())
		share(max(b.limits.MaxFetches/networkDivisor, b.limits.MaxFetchesPerAddress), "network", network)
		share(b.limits.MaxFetchesPerDomain/networkDivisorOfDomain, "network", network, t.domain())
	}
	return claim
}

// acquire waits for a slot. It returns oauth.ErrMetadataBudget if the requester has no fetches left
// or no slot becomes free in time, and oauth.ErrMetadataSlow during a pause of the breaker. The
// caller must call Leave after the fetch.
func (b *budget) acquire(ctx context.Context, t target, now func() time.Time) (*fairqueue.Slot, error) {
	if err := b.rates.admits(t, now()); err != nil {
		return nil, err
	}
	slow, err := b.breaker.check(t.breakerKey(), now())
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, b.wait, errNoSlot)
	defer cancel()
	slot, err := b.queue.Acquire(waiting, b.claim(t, slow))
	switch {
	case errors.Is(err, fairqueue.ErrFull), err != nil && errors.Is(context.Cause(waiting), errNoSlot):
		return nil, fmt.Errorf("%w: %w", oauth.ErrMetadataBudget, cmp.Or(context.Cause(waiting), err))
	case err != nil:
		return nil, fmt.Errorf("%w: wait for a place: %w", oauth.ErrMetadataUnreachable, err)
	}
	if _, err := b.breaker.check(t.breakerKey(), now()); err != nil { // it may have timed out meanwhile
		slot.Release()
		return nil, err
	}
	return slot, nil
}

var errNoSlot = errors.New("no place became free in time")

// crowded reports whether all slots are taken.
func (b *budget) crowded() bool { return b.queue.Full() }
