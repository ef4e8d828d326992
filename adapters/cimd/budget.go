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

// How many requests may wait for a place, in all and from one address.
const (
	maxWaiting           = 4096
	maxWaitingPerAddress = 128
)

// The share of one /24 or /48 in all places, and in the places of one domain, when it fetches documents that are not known. Without it,
// an attacker with a /48 takes all places at the same moment, and others wait until one of those fetches ends.
const (
	networkShare         = 4
	networkShareOfDomain = 2
)

// budget bounds what strangers can make this server fetch (C21).
type budget struct {
	limits oauth.Limits
	wait   time.Duration // for a place
	queue  *fairqueue.Queue
	rates  *rates
	slow   *breaker
}

func newBudget(l oauth.Limits, wait time.Duration) *budget {
	return &budget{
		limits: l, wait: wait, rates: newRates(l), slow: newBreaker(),
		queue: fairqueue.New(fairqueue.Limits{Places: l.MaxFetches, Waiting: maxWaiting, WaitingPerAddress: maxWaitingPerAddress}),
	}
}

// target is a document that a requester needs.
type target struct {
	at        oauth.ClientID
	requester oauth.Requester
	known     bool // it was fetched before, or belongs to a client in use
}

func (t target) host() string { return strings.TrimSuffix(strings.ToLower(t.at.Host()), ":443") }

// domain returns the registrable domain of the host; an IP address or a name of one label, as in development, is its own.
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

// network returns the largest network around the requester, the zero value for one without limits.
func (t target) network() netip.Prefix {
	networks := t.requester.Networks()
	if len(networks) == 0 {
		return netip.Prefix{}
	}
	return networks[len(networks)-1]
}

// breakerKey returns what is slow when this fetch times out. It is the host and not the domain: one slow tenant of a domain must not stop
// the others. An attacker can have any number of slow hosts in one domain, but MaxFetchesPerDomain bounds those together, and the shares
// of the attacker's networks bound slow domains. A known document is apart from its host, where an attacker may know slow paths.
func (t target) breakerKey() string {
	if t.known {
		return t.at.String()
	}
	return t.host()
}

// claim returns what the fetch takes. Known documents have shares of their own: places that unknown ones hold do not matter for them.
func (b *budget) claim(t target, slow bool) fairqueue.Claim {
	claim := fairqueue.Claim{Networks: t.requester.Networks()}
	share := func(limit int, key ...string) {
		claim.Shares = append(claim.Shares, fairqueue.Share{Key: strings.Join(key, " "), Max: max(limit, 1)})
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
		share(max(b.limits.MaxFetches/networkShare, b.limits.MaxFetchesPerAddress), "network", network)
		share(b.limits.MaxFetchesPerDomain/networkShareOfDomain, "network", network, t.domain())
	}
	return claim
}

// enter waits for a place. It refuses with oauth.ErrMetadataBudget when the requester has spent their fetches or no place becomes free in
// time, and with oauth.ErrMetadataSlow while the host is known to time out. The caller calls Leave when the fetch is over.
func (b *budget) enter(ctx context.Context, t target, now func() time.Time) (*fairqueue.Place, error) {
	if err := b.rates.admits(t, now()); err != nil {
		return nil, err
	}
	slow, err := b.slow.admits(t.breakerKey(), now())
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, b.wait, errNoPlace)
	defer cancel()
	place, err := b.queue.Enter(waiting, b.claim(t, slow))
	switch {
	case errors.Is(err, fairqueue.ErrFull), err != nil && errors.Is(context.Cause(waiting), errNoPlace):
		return nil, fmt.Errorf("%w: %w", oauth.ErrMetadataBudget, cmp.Or(context.Cause(waiting), err))
	case err != nil:
		return nil, fmt.Errorf("%w: wait for a place: %w", oauth.ErrMetadataUnreachable, err)
	}
	if _, err := b.slow.admits(t.breakerKey(), now()); err != nil { // it has timed out meanwhile
		place.Leave()
		return nil, err
	}
	return place, nil
}

var errNoPlace = errors.New("no place became free in time")

// crowded reports whether all places are taken.
func (b *budget) crowded() bool { return b.queue.Full() }
