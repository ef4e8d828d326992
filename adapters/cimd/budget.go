package cimd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// budgetLimits bounds what strangers can make this server fetch (C21).
type budgetLimits struct {
	inFlight, inFlightPerHost int // of this process
	perMinuteAndHost          int
	perMinuteAndRequester     int
}

var defaultBudget = budgetLimits{inFlight: 8, inFlightPerHost: 2, perMinuteAndHost: 60, perMinuteAndRequester: 30}

// rates are how much may be fetched in a minute. They refuse with oauth.ErrMetadataBudget, and with oauth.ErrUnavailable when nobody
// can count.
type rates interface {
	// admits refuses a requester who has spent their fetches, before they can join others in one.
	admits(ctx context.Context, requester string, now time.Time) error
	// spend counts one fetch from the host; nobody in particular has no limit.
	spend(ctx context.Context, host, requester string, now time.Time) error
}

type budget struct {
	rates
	limits   budgetLimits
	mu       sync.Mutex
	inFlight int
	perHost  map[string]int
}

func newBudget(l budgetLimits, r rates) *budget {
	return &budget{rates: r, limits: l, perHost: map[string]int{}}
}

// enter spends one fetch of the requester from the client's host, or refuses as rates do. The caller calls leave when the fetch is
// over.
func (b *budget) enter(ctx context.Context, id oauth.ClientID, requester string, now time.Time) (leave func(), err error) {
	host := strings.TrimSuffix(strings.ToLower(id.Host()), ":443")
	if err := b.take(host); err != nil {
		return nil, err
	}
	if err := b.spend(ctx, host, requester, now); err != nil {
		b.leave(host)
		return nil, err
	}
	return func() { b.leave(host) }, nil
}

// take takes one of the places for fetches in flight.
func (b *budget) take(host string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.inFlight >= b.limits.inFlight:
		return fmt.Errorf("%w: %d are in flight", oauth.ErrMetadataBudget, b.inFlight)
	case b.perHost[host] >= b.limits.inFlightPerHost:
		return fmt.Errorf("%w: %d are in flight to one host", oauth.ErrMetadataBudget, b.perHost[host])
	}
	b.inFlight++
	b.perHost[host]++
	return nil
}

func (b *budget) leave(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
	if b.perHost[host]--; b.perHost[host] == 0 {
		delete(b.perHost, host)
	}
}

func (l budgetLimits) errHost() error {
	return fmt.Errorf("%w: more than %d in a minute to one host", oauth.ErrMetadataBudget, l.perMinuteAndHost)
}

func (l budgetLimits) errRequester() error {
	return fmt.Errorf("%w: more than %d in a minute for one address", oauth.ErrMetadataBudget, l.perMinuteAndRequester)
}
