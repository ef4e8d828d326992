package cimd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/strictjson"
	"github.com/pasteport/pasteport/adapters/timestamps"
	"github.com/pasteport/pasteport/domain/oauth"
)

// fetchCache fetches and caches valid documents of one kind (C36). read checks the members of a document.
type fetchCache[T any] struct {
	directory *Directory
	bodyBytes int64
	read      func(ctx context.Context, at oauth.ClientID, members map[string]any) (T, error)
	entries   *entries[T]
	refetched timestamps.Cache[string] // when a fresh document was fetched again
	failed    timestamps.Cache[string] // when an expired one could not be renewed
	flights   *flights[T]
}

const (
	// refetchInterval is the minimum time between two fetches of a fresh document in which something is missing (C50, D33).
	refetchInterval = time.Minute
	// renewInterval is the minimum time between two attempts to renew an expired document that stays in use (C56).
	renewInterval = 10 * time.Second
)

func newFetchCache[T any](d *Directory, s sizes, bodyBytes int64, read func(context.Context, oauth.ClientID, map[string]any) (T, error)) *fetchCache[T] {
	evicted := func() { d.options.Limited.Observe(oauth.LimitFetches, oauth.LimitEvicted) }
	return &fetchCache[T]{
		directory: d, bodyBytes: bodyBytes, read: read, entries: newEntries[T](s.inUse, s.others, evicted),
		refetched: timestamps.New[string](s.others), failed: timestamps.New[string](s.inUse), flights: newFlights[T](),
	}
}

// find returns the cached document while it is fresh, otherwise one that is fetched once for all concurrent requests (C37, C39). A fresh document
// that is not enough is fetched again, but not twice within refetchInterval.
func (c *fetchCache[T]) find(ctx context.Context, at oauth.ClientID, enough func(T) bool) (found T, err error) {
	now := c.directory.options.Now()
	known, _ := c.entries.get(at.String())
	if known.fresh(now) && enough(known.value) {
		return known.value, nil
	}
	if c.refetched.Within(at.String(), refetchInterval, now) { // perhaps after known was read, so it is read again
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

// findStale is like find, but uses a document that expired less than maxStale ago if its renewal fails for a transient reason (C56).
func (c *fetchCache[T]) findStale(ctx context.Context, at oauth.ClientID, enough func(T) bool) (found T, err error) {
	now := c.directory.options.Now()
	known, _ := c.entries.get(at.String())
	usable := known.stale(now) && enough(known.value)
	if usable && c.failed.Within(at.String(), renewInterval, now) {
		return known.value, nil
	}
	found, err = c.find(ctx, at, enough)
	if err == nil || !usable || !isTransient(err) {
		return found, err
	}
	c.failed.Add(at.String(), now)
	c.directory.options.Logger.InfoContext(ctx, "expired document stays in use because it cannot be renewed", "url", at.String(), "error", err)
	return known.value, nil
}

// fresh returns the cached document if it is fresh.
func (c *fetchCache[T]) fresh(at oauth.ClientID) (value T, ok bool) {
	known, _ := c.entries.get(at.String())
	if !known.fresh(c.directory.options.Now()) {
		return value, false
	}
	return known.value, true
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
	t := target{at: at, requester: oauth.RequesterFrom(ctx), known: isKnown}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.started, cancel)()
	slot, err := d.budget.acquire(waiting, t, d.options.Now)
	if err == nil && slot.Waited {
		d.options.Limited.Observe(oauth.LimitFetches, oauth.LimitSlowed)
	}
	switch {
	case err != nil && f.hasStarted():
		return nil
	case err != nil:
		return err
	case !c.flights.begin(f):
		slot.Release()
		return nil
	}
	go func() {
		// The request that started the flight may end without failing the others.
		value, err := c.refresh(context.WithoutCancel(ctx), t, known)
		slot.Release()
		c.flights.land(at, f, value, err)
	}()
	return nil
}

// refresh fetches or revalidates the document, and caches it if it is valid. It fetches nothing if another flight has landed since the caller read
// known.
func (c *fetchCache[T]) refresh(ctx context.Context, t target, known *entry[T]) (found T, err error) {
	d, now := c.directory, c.directory.options.Now
	latest, _ := c.entries.get(t.at.String())
	again := latest.fresh(now())
	if again && (latest != known || c.refetched.Within(t.at.String(), refetchInterval, now())) {
		return latest.value, nil
	}
	d.budget.rates.spend(t, now())
	if again { // recorded after the fetch, so that requests join it until then
		defer func() { c.refetched.Add(t.at.String(), now()) }()
	}
	fetched, err := c.fetch(ctx, t.at, known)
	d.budget.breaker.fetched(t.breakerKey(), err, now())
	if err != nil {
		return found, err
	}
	c.entries.add(t.at.String(), fetched, t.network())
	return fetched.value, nil
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
	// The bare transport follows no redirect and keeps no cookie (C11, C12).
	response, err := d.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("%w: get the document: %w", oauth.ErrMetadataUnreachable, err)
	}
	defer response.Body.Close()
	if conditional && response.StatusCode == http.StatusNotModified {
		return known.renewed(response.Header, d.options.Now()), nil
	}
	value, err := c.readResponse(ctx, at, response)
	if err != nil {
		return nil, err
	}
	return newEntry(value, response.Header, d.options.Now()), nil
}

// readResponse reads and checks the document in a response.
func (c *fetchCache[T]) readResponse(ctx context.Context, at oauth.ClientID, response *http.Response) (value T, err error) {
	body, err := readDocument(response, c.bodyBytes, c.directory.options.AnyContentType)
	if err != nil {
		return value, err
	}
	members, err := strictjson.Object(body)
	if err != nil {
		return value, fmt.Errorf("%w: %w", oauth.ErrMetadataMalformed, err)
	}
	return c.read(ctx, at, members)
}

// flight is a fetch for several requests (C39). Each request waits for a slot in the queue of its network, and the first that gets one starts
// the fetch for all. So a request does not wait in the queue of an attacker who requests the same document.
type flight[T any] struct {
	users   int // guarded by flights.mu
	started context.Context
	start   context.CancelFunc
	landed  chan struct{}
	value   T // set before landed is closed, like err
	err     error
}

func (f *flight[T]) hasStarted() bool { return f.started.Err() != nil }

// flights holds the flights that have not landed, by document.
type flights[T any] struct {
	mu     sync.Mutex
	byName map[string]*flight[T]
}

func newFlights[T any]() *flights[T] { return &flights[T]{byName: map[string]*flight[T]{}} }

// join returns the flight for a document. The caller must call leave.
func (fs *flights[T]) join(at oauth.ClientID) *flight[T] {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f, found := fs.byName[at.String()]
	if !found {
		f = &flight[T]{landed: make(chan struct{})}
		f.started, f.start = context.WithCancel(context.Background()) //nolint:gosec // begin or leave calls start
		fs.byName[at.String()] = f
	}
	f.users++
	return f
}

// leave removes a flight that has not started when its last request leaves.
func (fs *flights[T]) leave(at oauth.ClientID, f *flight[T]) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.users--; f.users == 0 && !f.hasStarted() {
		delete(fs.byName, at.String())
		f.start()
	}
}

// begin reports whether the caller is the first to start the flight.
func (fs *flights[T]) begin(f *flight[T]) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	first := !f.hasStarted()
	f.start()
	return first
}

// land returns the result to all requests of the flight. The next request joins another one.
func (fs *flights[T]) land(at oauth.ClientID, f *flight[T], value T, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.byName, at.String())
	f.value, f.err = value, err
	close(f.landed)
}
