package cimd

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/pasteport/pasteport/adapters/internal/strictjson"
	"github.com/pasteport/pasteport/domain/oauth"
)

// fetchCache fetches and caches valid documents of one kind. read checks the members of a document.
type fetchCache[T any] struct {
	directory *Directory
	kind      oauth.DocumentKind
	bodyBytes int64
	read      func(ctx context.Context, at oauth.ClientID, members map[string]any) (T, error)
	records   *records[T]
	flights   singleflight.Group
}

const (
	// refetchInterval is the minimum time between two fetches of a fresh document in which
	// something is missing.
	refetchInterval = time.Minute
	// renewInterval is the minimum time between two attempts to renew an expired document that
	// stays in use.
	renewInterval = 10 * time.Second
)

// served is a document that is fresh, or the last good one after a failed fetch.
type served[T any] struct {
	*entry[T]
	failure error // why it is not fresh
}

// find returns the cached document while it is fresh, otherwise one that is fetched once for all
// concurrent requests. A fresh document that is not enough is fetched again, but not twice within
// refetchInterval. When the fetch fails for a reason that says nothing about the client, find
// returns the last good document, if mayServe allows that. enough reports whether the document has
// what the caller looks for.
func (c *fetchCache[T]) find(
	ctx context.Context, at oauth.ClientID, enough func(T) bool, mayServe func(*entry[T], time.Time) bool,
) (served[T], error) {
	now := c.directory.options.Now()
	isSettled := func(e *entry[T]) bool {
		return e.fresh(now) && (enough(e.value) || within(e.tried.at, refetchInterval, now))
	}
	known, _ := c.records.get(at.String())
	if isSettled(known) {
		return served[T]{known, nil}, nil
	}
	if known = c.newest(ctx, at, known); isSettled(known) {
		return served[T]{known, nil}, nil
	}
	if mayServe(known, now) && known.tried.err != nil && within(known.tried.at, renewInterval, now) {
		return served[T]{known, known.tried.err}, nil
	}
	fetched, err := c.share(ctx, at, known)
	if err != nil && oauth.IsMetadataOutage(err) && mayServe(known, now) {
		return served[T]{known, err}, nil
	}
	return served[T]{fetched, nil}, err
}

// within reports whether at is less than interval before now. It is false for a time after now,
// when the clock was ahead.
func within(at time.Time, interval time.Duration, now time.Time) bool {
	age := now.Sub(at)
	return 0 <= age && age < interval
}

// share fetches the document once for all concurrent requests. A request that is cancelled does not
// fail the others.
func (c *fetchCache[T]) share(ctx context.Context, at oauth.ClientID, known *entry[T]) (*entry[T], error) {
	flight := c.flights.DoChan(at.String(), func() (any, error) {
		return c.refresh(context.WithoutCancel(ctx), at, known)
	})
	select {
	case result := <-flight:
		fetched, _ := result.Val.(*entry[T])
		return fetched, result.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait for the fetch: %w", oauth.ErrMetadataUnreachable, ctx.Err())
	}
}

// refresh fetches or revalidates the document, and caches it if it is valid. It fetches nothing if
// another request has done so since the caller read known.
func (c *fetchCache[T]) refresh(ctx context.Context, at oauth.ClientID, known *entry[T]) (*entry[T], error) {
	d, url, now, network := c.directory, at.String(), c.directory.options.Now, oauth.RequesterFrom(ctx).Network()
	latest, inUse := c.records.get(url)
	wasFresh := latest.fresh(now())
	if wasFresh && (latest != known || within(latest.tried.at, refetchInterval, now())) {
		return latest, nil
	}
	release, err := d.acquire(ctx, at, inUse || known != nil)
	if err != nil {
		return nil, err
	}
	defer release()
	fetched, err := c.fetch(ctx, at, known)
	switch {
	case err == nil:
		if wasFresh { // it lacked something: do not fetch it again within refetchInterval
			fetched.tried.at = now()
		}
		if inUse || latest != nil && latest.stored { // so that anonymous requests add no rows
			fetched = c.save(ctx, fetched, oauth.Fingerprint{})
		}
		c.records.set(url, fetched, network)
	case oauth.IsMetadataWithdrawal(err):
		c.withdraw(ctx, at)
	case latest != nil:
		c.records.replace(url, latest, latest.afterFailure(err, now()), network)
	}
	return fetched, err
}

func (c *fetchCache[T]) fetch(ctx context.Context, at oauth.ClientID, known *entry[T]) (*entry[T], error) {
	d := c.directory
	ctx, cancel := context.WithTimeout(ctx, d.limits.fetch)
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
	body, err := readDocument(response, c.bodyBytes, d.options.AllowAnyContentType)
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
