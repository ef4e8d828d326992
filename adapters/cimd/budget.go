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
}

var defaultBudget = budgetLimits{inFlight: 8, inFlightPerHost: 2, perMinuteAndHost: 60}

// maxMetered is the number of hosts whose rate is kept; making it forget one takes that many fetches elsewhere.
const maxMetered = 4096

type budget struct {
	limits   budgetLimits
	mu       sync.Mutex
	inFlight int
	perHost  map[string]int
	rates    *lru.Cache[string, *rate.Limiter]
}

func newBudget(l budgetLimits) *budget {
	return &budget{limits: l, perHost: map[string]int{}, rates: newLRU[*rate.Limiter](maxMetered)}
}

// enter spends one fetch from the client's host, or refuses with oauth.ErrMetadataBudget. The caller calls leave when the
// fetch is over.
func (b *budget) enter(id oauth.ClientID, now time.Time) (leave func(), err error) {
	host := strings.TrimSuffix(strings.ToLower(id.Host()), ":443")
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.inFlight >= b.limits.inFlight:
		return nil, fmt.Errorf("%w: %d are in flight", oauth.ErrMetadataBudget, b.inFlight)
	case b.perHost[host] >= b.limits.inFlightPerHost:
		return nil, fmt.Errorf("%w: %d are in flight to one host", oauth.ErrMetadataBudget, b.perHost[host])
	case !b.rate(host).AllowN(now, 1):
		return nil, fmt.Errorf("%w: more than %d in a minute to one host", oauth.ErrMetadataBudget, b.limits.perMinuteAndHost)
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

func (b *budget) rate(host string) *rate.Limiter {
	known, ok := b.rates.Get(host)
	if !ok {
		known = rate.NewLimiter(rate.Every(time.Minute/time.Duration(b.limits.perMinuteAndHost)), b.limits.perMinuteAndHost)
		b.rates.Add(host, known)
	}
	return known
}
