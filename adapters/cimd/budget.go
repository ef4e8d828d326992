package cimd

import (
	"fmt"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

// budgetLimits bounds what strangers can make this server fetch (C21).
type budgetLimits struct {
	inFlight, inFlightPerHost int
	perMinuteAndHost          int
	perMinuteAndRequester     int
}

var defaultBudget = budgetLimits{inFlight: 8, inFlightPerHost: 2, perMinuteAndHost: 60, perMinuteAndRequester: 30}

// maxMetered is the number of hosts, and of requesters, whose rate is kept; making it forget one takes that many others.
const maxMetered = 4096

type budget struct {
	limits     budgetLimits
	mu         sync.Mutex
	inFlight   int
	perHost    map[string]int
	hosts      *lru.Cache[string, *rate.Limiter]
	requesters *lru.Cache[string, *rate.Limiter]
}

func newBudget(l budgetLimits) *budget {
	return &budget{limits: l, perHost: map[string]int{}, hosts: newLRU[*rate.Limiter](maxMetered), requesters: newLRU[*rate.Limiter](maxMetered)}
}

// admits refuses a requester who has spent their fetches, before they can join others in one; nobody in particular has no limit.
func (b *budget) admits(requester string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if requester != "" && rateOf(b.requesters, requester, b.limits.perMinuteAndRequester).TokensAt(now) < 1 {
		return fmt.Errorf("%w: more than %d in a minute for one address", oauth.ErrMetadataBudget, b.limits.perMinuteAndRequester)
	}
	return nil
}

// enter spends one fetch of the requester from the client's host, or refuses with oauth.ErrMetadataBudget. The caller calls
// leave when the fetch is over.
func (b *budget) enter(id oauth.ClientID, requester string, now time.Time) (leave func(), err error) {
	host := strings.TrimSuffix(strings.ToLower(id.Host()), ":443")
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.inFlight >= b.limits.inFlight:
		return nil, fmt.Errorf("%w: %d are in flight", oauth.ErrMetadataBudget, b.inFlight)
	case b.perHost[host] >= b.limits.inFlightPerHost:
		return nil, fmt.Errorf("%w: %d are in flight to one host", oauth.ErrMetadataBudget, b.perHost[host])
	case !rateOf(b.hosts, host, b.limits.perMinuteAndHost).AllowN(now, 1):
		return nil, fmt.Errorf("%w: more than %d in a minute to one host", oauth.ErrMetadataBudget, b.limits.perMinuteAndHost)
	}
	if requester != "" {
		rateOf(b.requesters, requester, b.limits.perMinuteAndRequester).AllowN(now, 1)
	}
	b.inFlight++
	b.perHost[host]++
	return func() { b.leave(host) }, nil
}

func (b *budget) leave(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
	if b.perHost[host]--; b.perHost[host] == 0 {
		delete(b.perHost, host)
	}
}

func rateOf(rates *lru.Cache[string, *rate.Limiter], key string, perMinute int) *rate.Limiter {
	known, ok := rates.Get(key)
	if !ok {
		known = rate.NewLimiter(rate.Every(time.Minute/time.Duration(perMinute)), perMinute)
		rates.Add(key, known)
	}
	return known
}
