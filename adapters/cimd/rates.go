package cimd

import (
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

// maxMetered is the number of hosts, and of requesters, whose rate is kept; making it forget one takes that many others.
const maxMetered = 4096

// ownRates are those of this process alone.
type ownRates struct {
	limits     budgetLimits
	mu         sync.Mutex
	hosts      *lru.Cache[string, *rate.Limiter]
	requesters *lru.Cache[string, *rate.Limiter]
}

func newOwnRates(l budgetLimits) *ownRates {
	return &ownRates{limits: l, hosts: newLRU[*rate.Limiter](maxMetered), requesters: newLRU[*rate.Limiter](maxMetered)}
}

func (r *ownRates) admits(_ context.Context, requester string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if requester != "" && rateOf(r.requesters, requester, r.limits.perMinuteAndRequester).TokensAt(now) < 1 {
		return r.limits.errRequester()
	}
	return nil
}

func (r *ownRates) spend(_ context.Context, host, requester string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !rateOf(r.hosts, host, r.limits.perMinuteAndHost).AllowN(now, 1) {
		return r.limits.errHost()
	}
	if requester != "" {
		rateOf(r.requesters, requester, r.limits.perMinuteAndRequester).AllowN(now, 1)
	}
	return nil
}

func rateOf(rates *lru.Cache[string, *rate.Limiter], key string, perMinute int) *rate.Limiter {
	known, ok := rates.Get(key)
	if !ok {
		known = rate.NewLimiter(rate.Every(time.Minute/time.Duration(perMinute)), perMinute)
		rates.Add(key, known)
	}
	return known
}

// Shared counts in a store, for every process that uses it, under names that only the server secret can make.
type Shared struct {
	Counter oauth.WindowCounter
	Keys    oauth.Keys
}

// sharedRates counts in windows of a minute. A requester pays for each look that remembers nothing, also when others fetch the same
// meanwhile: a store is asked once for each limit.
type sharedRates struct {
	limits budgetLimits
	by     Shared
}

func (r sharedRates) admits(ctx context.Context, requester string, now time.Time) error {
	if requester == "" {
		return nil
	}
	return r.count(ctx, now, "fetches/requester", requester, r.limits.perMinuteAndRequester, r.limits.errRequester())
}

func (r sharedRates) spend(ctx context.Context, host, _ string, now time.Time) error {
	return r.count(ctx, now, "fetches/host", host, r.limits.perMinuteAndHost, r.limits.errHost())
}

func (r sharedRates) count(ctx context.Context, now time.Time, of, subject string, limit int, full error) error {
	window, err := r.by.Keys.Window(of, subject, limit, time.Minute)
	var counts []oauth.WindowCount
	if err == nil {
		counts, err = r.by.Counter.Counts(ctx, now, window)
	}
	if err == nil && window.Full(counts[0], now) > 0 {
		return full
	}
	if err == nil {
		err = r.by.Counter.Count(ctx, now, window)
	}
	if err != nil {
		return fmt.Errorf("%w: counting a fetch: %w", oauth.ErrUnavailable, err)
	}
	return nil
}
