package cimd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/adapters/strictjson"
	"github.com/pasteport/pasteport/domain/oauth"
)

// fetchCache fetches and caches valid documents of one kind. read checks the members of a document.
type fetchCache[T any] struct {
	directory *Directory
	kind      oauth.DocumentKind
	bodyBytes int64
	read      func(ctx context.Context, at oauth.ClientID, members map[string]any) (T, error)
	entries   *entries[T]
	refetched *lru.Cache[string, time.Time] // when a fresh document was fetched again
	failures  *lru.Cache[string, failure]
	flights   *flights[T]
}

// failure is a failed fetch that says nothing about the client.
type failure struct {
	at  time.Time
	err error
}

const (
	// refetchInterval is the minimum time between two fetches of a fresh document in which
	// something is missing.
	refetchInterval = time.Minute
	// renewInterval is the minimum time between two attempts to renew an expired document that
	// stays in use.
	renewInterval = 10 * time.Second
)

func newFetchCache[T any](d *Directory, kind oauth.DocumentKind, s sizes,
	read func(context.Context, oauth.ClientID, map[string]any) (T, error)) *fetchCache[T] {
	evicted := func() { d.options.Limited.Observe(oauth.LimitFetches, oauth.LimitEvicted) }
	return &fetchCache[T]{
		directory: d,
		kind:      kind,
		bodyBytes: s.bodyBytes,
		read:      read,
		entries:   newEntries[T](s.inUse, s.others, evicted),
		refetched: newLRU[string, time.Time](s.others),
		failures:  newLRU[string, failure](s.inUse),
		flights:   newFlights[T](),
	}
}

// find returns the cached document while it is fresh, otherwise one that is fetched once for all
// concurrent requests. A fresh document that is not enough is fetched again, but not twice within
// refetchInterval.
func (c *fetchCache[T]) find(ctx context.Context, at oauth.ClientID, enough func(T) bool) (found T, err error) {
	now := c.directory.options.Now()
	known := c.cached(ctx, at)
	if known.fresh(now) && enough(known.value) {
		return known.value, nil
	}
	if c.wasRefetched(at, now) { // perhaps after known was read, so it is read again
		if latest, fresh := c.fresh(at); fresh {
			return latest, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.directory.limits.fetch)
	defer cancel()
	f := c.flights.join(at)
	defer c.flights.leave(at, f)
	if err := c.start(ctx, f, at, known); err != nil {
		c.observeRefusal(err)
		return found, err
	}
	select {
	case <-f.landed:
		return f.value, f.err
	case <-ctx.Done():
		return found, fmt.Errorf("%w: wait for the fetch: %w", oauth.ErrMetadataUnreachable, ctx.Err())
	}
}

// lookupResult is a document that is fresh, or the last good one after a failed fetch.
type lookupResult[T any] struct {
	value     T
	checkedAt time.Time // zero for a fresh document
	failure   error     // why it is not fresh
}

// findOrStale is like find, but when the fetch fails for a reason that says nothing about the
// client, it returns the last good document, if serves allows that.
func (c *fetchCache[T]) findOrStale(
	ctx context.Context, at oauth.ClientID, enough func(T) bool, serves func(*entry[T], time.Time) bool,
) (lookupResult[T], error) {
	now := c.directory.options.Now()
	if last, failed := c.failures.Get(at.String()); failed && within(last.at, renewInterval, now) {
		if known := c.newest(ctx, at); !known.fresh(now) && serves(known, now) {
			return lookupResult[T]{known.value, known.CheckedAt, last.err}, nil
		}
	}
	value, err := c.find(ctx, at, enough)
	if err == nil || !oauth.IsMetadataOutage(err) {
		return lookupResult[T]{value: value}, err
	}
	last := c.newest(ctx, at)
	if !serves(last, now) {
		return lookupResult[T]{}, err
	}
	return lookupResult[T]{last.value, last.CheckedAt, err}, nil
}

// within reports whether at is less than interval before now. It is false for a time after now,
// when the clock was ahead.
func within(at time.Time, interval time.Duration, now time.Time) bool {
	age := now.Sub(at)
	return 0 <= age && age < interval
}

// fresh returns the cached document if it is fresh.
func (c *fetchCache[T]) fresh(at oauth.ClientID) (value T, ok bool) {
	known, _ := c.entries.get(at.String())
	if !known.fresh(c.directory.options.Now()) {
		return value, false
	}
	return known.value, true
}

// wasRefetched reports whether a fresh document was fetched again within refetchInterval.
func (c *fetchCache[T]) wasRefetched(at oauth.ClientID, now time.Time) bool {
	last, found := c.refetched.Get(at.String())
	return found && within(last, refetchInterval, now)
}

func (c *fetchCache[T]) observeRefusal(err error) {
	if errors.Is(err, oauth.ErrMetadataBudget) || errors.Is(err, oauth.ErrMetadataSlow) {
		c.directory.options.Limited.Observe(oauth.LimitFetches, oauth.LimitRefused)
	}
}

// start waits for a slot and starts the flight, unless another request starts it first.
func (c *fetchCache[T]) start(ctx context.Context, f *flight[T], at oauth.ClientID, known *entry[T]) error {
	d := c.directory
	if f.hasStarted() {
		return nil
	}
	_, isKnown := c.entries.get(at.String())
	t := oauth.Fetch{At: at, By: oauth.RequesterFrom(ctx), Known: isKnown}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.started, cancel)()
	release, waited, err := d.acquire(waiting, t)
	if waited {
		d.options.Limited.Observe(oauth.LimitFetches, oauth.LimitSlowed)
	}
	switch {
	case err != nil && f.hasStarted():
		return nil
	case err != nil:
		return err
	case !c.flights.begin(f):
		release()
		return nil
	}
	go func() {
		// The request that started the flight may end without failing the others.
		value, err := c.refresh(context.WithoutCancel(ctx), t, known)
		release()
		c.flights.land(at, f, value, err)
	}()
	return nil
}

// refresh fetches or revalidates the document, and caches it if it is valid. It fetches nothing if
// another flight has landed since the caller read known.
func (c *fetchCache[T]) refresh(ctx context.Context, t oauth.Fetch, known *entry[T]) (found T, err error) {
	d, now := c.directory, c.directory.options.Now
	latest, _ := c.entries.get(t.At.String())
	again := latest.fresh(now())
	if again && (latest != known || c.wasRefetched(t.At, now())) {
		return latest.value, nil
	}
	d.options.Fetches.Count(t, now())
	if again { // recorded after the fetch, so that requests join it until then
		defer func() { c.refetched.Add(t.At.String(), now()) }()
	}
	fetched, err := c.fetch(ctx, t.At, known)
	d.breaker.fetched(breakerKey(t), err, now())
	if err != nil {
		c.failed(ctx, t.At, err)
		return found, err
	}
	c.failures.Remove(t.At.String())
	c.entries.add(t.At.String(), c.saveIfInUse(ctx, t.At, latest, fetched), t.By.Network())
	return fetched.value, nil
}

// failed records a failure that says nothing about the client, and withdraws the document after a
// definite one.
func (c *fetchCache[T]) failed(ctx context.Context, at oauth.ClientID, err error) {
	switch {
	case oauth.IsMetadataOutage(err):
		c.failures.Add(at.String(), failure{c.directory.options.Now(), err})
	case oauth.IsMetadataWithdrawal(err):
		c.withdraw(ctx, at)
	}
}

func (c *fetchCache[T]) fetch(ctx context.Context, at oauth.ClientID, known *entry[T]) (*entry[T], error) {
	d := c.directory
	ctx, cancel := context.WithTimeout(ctx, d.fetchLimit())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: build the request: %w", oauth.ErrMetadataUnreachable, err)
	}
	agent := "Pasteport (+" + d.options.Issuer + ")"
	request.Header = http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {agent}}
	conditional := known.addConditions(request.Header)
	// The bare transport follows no redirect and keeps no cookie.
	response, err := d.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("%w: get the document: %w", oauth.ErrMetadataUnreachable, err)
	}
	defer response.Body.Close()
	if conditional && response.StatusCode == http.StatusNotModified {
		return known.renewed(response.Header, d.options.Now()), nil
	}
	body, err := readDocument(response, c.bodyBytes, d.options.AnyContentType)
	if err != nil {
		return nil, err
	}
	value, err := c.parse(ctx, at, body)
	if err != nil {
		return nil, err
	}
	return newEntry(oauth.ClientDocument{Kind: c.kind, URL: at.String(), Body: body}, value, response.Header,
		d.options.Now()), nil
}

// parse decodes and checks a document.
func (c *fetchCache[T]) parse(ctx context.Context, at oauth.ClientID, body []byte) (value T, err error) {
	members, err := strictjson.Object(body)
	if err != nil {
		return value, fmt.Errorf("%w: %w", oauth.ErrMetadataMalformed, err)
	}
	return c.read(ctx, at, members)
}
