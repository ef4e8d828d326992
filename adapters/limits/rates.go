package limits

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pasteport/pasteport/domain/oauth"
)

const maxKeys = 30_000 // of each cache

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, _ := lru.New[K, V](size) // fails only for a size below one
	return cache
}

// Rates limits the events of each key with a token bucket. It evicts the least recently used one,
// and is safe for concurrent use.
type Rates[K comparable] struct {
	limit   rate.Limit
	burst   int
	mu      sync.Mutex
	buckets *lru.Cache[K, *bucket]
}

// bucket is a limiter and the time of its last use.
type bucket struct {
	*rate.Limiter
	used time.Time
}

// NewRates allows each key burst events at once, and a further one in each interval.
func NewRates[K comparable](interval time.Duration, burst int) *Rates[K] {
	return newRates[K](rate.Every(interval), burst)
}

func newRates[K comparable](limit rate.Limit, burst int) *Rates[K] {
	return &Rates[K]{limit: limit, burst: burst, buckets: newCache[K, *bucket](maxKeys)}
}

// perMinute allows each key this number of events at once, and as many in each minute.
func perMinute[K comparable](events int) *Rates[K] {
	return newRates[K](rate.Limit(float64(events)/time.Minute.Seconds()), events)
}

// Take counts an event and returns 0. If there are too many, it counts nothing and returns when the
// next one is allowed.
func (r *Rates[K]) Take(key K, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.bucket(key, r.limit, r.burst, now)
	if wait = b.wait(now); wait == 0 {
		b.AllowN(now, 1)
	}
	return wait
}

// bucket returns the bucket of a key. It is a new one if the clock was set back since its last use,
// because a limiter gains nothing until the clock has caught up.
func (r *Rates[K]) bucket(key K, limit rate.Limit, burst int, now time.Time) *bucket {
	known, found := r.buckets.Get(key)
	if !found || known.used.Sub(now) > oauth.MaxClockDifference {
		known = &bucket{Limiter: rate.NewLimiter(limit, burst)}
		r.buckets.Add(key, known)
	}
	known.used = now
	return known
}

// wait returns the time until the bucket allows an event.
func (b *bucket) wait(now time.Time) time.Duration { return b.waitFor(1, now) }

// waitFor returns the time until the bucket allows some events at once. It never allows more than
// its burst.
func (b *bucket) waitFor(events int, now time.Time) time.Duration {
	missing := max(0, float64(events)-b.TokensAt(now))
	return time.Duration(missing / float64(b.Limit()) * float64(time.Second))
}

// networkRates limits the events of each address and of the networks around it. Each larger network
// has a higher rate and a larger burst.
type networkRates struct{ *Rates[netip.Prefix] }

// growth is the factor between the rates and bursts of a network and of the next larger one.
const growth = 5

// take counts an event in every network around the address, or in none.
func (r networkRates) take(by oauth.Requester, now time.Time, more ...*bucket) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	buckets, limit, burst := more, r.limit, r.burst
	for _, network := range by.Networks() {
		buckets = append(buckets, r.bucket(network, limit, burst, now))
		limit, burst = limit*growth, burst*growth
	}
	for _, b := range buckets {
		wait = max(wait, b.wait(now))
	}
	if wait > 0 {
		return wait
	}
	for _, b := range buckets {
		b.AllowN(now, 1)
	}
	return 0
}

// Failures is an oauth.FailureLimit of this process alone. It is safe for concurrent use.
type Failures struct{ rates *Rates[string] }

// NewFailures returns a limit on the failures of an address in a minute.
func NewFailures(limit int) Failures { return Failures{perMinute[string](limit)} }

// Failed implements oauth.FailureLimit.
func (f Failures) Failed(address string, now time.Time) (wait time.Duration) {
	return f.rates.Take(address, now)
}

// Registrations is an oauth.RegistrationLimit of this process alone. It is safe for concurrent use.
type Registrations struct {
	total    *Rates[struct{}]
	networks networkRates
}

// NewRegistrations returns the limits on the registrations of a minute.
func NewRegistrations(limits oauth.Limits) Registrations {
	return Registrations{
		total:    perMinute[struct{}](limits.MaxRegistrationsPerMinute),
		networks: networkRates{perMinute[netip.Prefix](limits.MaxRegistrationsPerMinuteAndAddress)},
	}
}

// Admit implements oauth.RegistrationLimit. A refused registration counts nowhere, so that one
// address cannot use up the total.
func (r Registrations) Admit(by oauth.Requester, now time.Time) (wait time.Duration) {
	r.total.mu.Lock()
	defer r.total.mu.Unlock()
	return r.networks.take(by, now, r.total.bucket(struct{}{}, r.total.limit, r.total.burst, now))
}

// Fetches is an oauth.FetchLimit of this process alone. It is safe for concurrent use.
type Fetches struct {
	networks *Rates[netip.Prefix]
	hosts    *Rates[string]
}

// The fetches of a minute for a /24 or a /56, and from a host.
const (
	fetchesForNetwork = 30
	fetchesFromHost   = 60
)

// NewFetches returns a limit that has counted nothing.
func NewFetches() Fetches {
	return Fetches{perMinute[netip.Prefix](fetchesForNetwork), perMinute[string](fetchesFromHost)}
}

// Take implements oauth.FetchLimit. A fetch that is refused for the network does not count for the
// host.
func (f Fetches) Take(by oauth.Requester, host string, now time.Time) (wait time.Duration) {
	if by.Limited() {
		if wait = f.networks.Take(by.Networks()[1], now); wait > 0 {
			return wait
		}
	}
	return f.hosts.Take(host, now)
}

// Calls is an oauth.CallLimit of this process alone. It is safe for concurrent use.
type Calls struct{ rates *Rates[string] }

// NewCalls returns a limit that has counted nothing.
func NewCalls() Calls { return Calls{perMinute[string](1)} }

// Take implements oauth.CallLimit.
func (c Calls) Take(quota oauth.CallQuota, now time.Time) (wait time.Duration) {
	c.rates.mu.Lock()
	defer c.rates.mu.Unlock()
	bucket := c.rates.bucket(quota.Key, c.rates.limit*rate.Limit(quota.PerMinute), quota.PerMinute, now)
	if wait = bucket.waitFor(quota.Calls, now); wait == 0 {
		bucket.AllowN(now, quota.Calls)
	}
	return wait
}
