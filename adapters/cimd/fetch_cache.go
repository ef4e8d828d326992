package cimd

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/internal/strictjson"
	"github.com/pasteport/pasteport/application/cache"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/quota"
)

// fetchCache fetches and caches valid documents of one kind.
type fetchCache[T any] struct {
	directory *Directory
	store     client.DocumentStore // nil for documents that are in memory only
	bodyBytes int64
	read      reader[T]
	kept      *cache.LRU[string, *entry[T]]
	flights   singleflight.Group
}

// reader checks the members of a document.
type reader[T any] func(ctx context.Context, at oauth.ClientID, members map[string]any) (T, error)

const (
	// refetchInterval is the least time between two fetches of a fresh document that lacks a part.
	refetchInterval = time.Minute
	// renewInterval is the minimum time between two attempts to renew an expired document that
	// stays in use.
	renewInterval = 10 * time.Second
)

func newFetchCache[T any](d *Directory, size int, bodyBytes int64, read reader[T]) *fetchCache[T] {
	return &fetchCache[T]{
		directory: d,
		bodyBytes: bodyBytes,
		read:      read,
		kept:      cache.New[string, *entry[T]](size),
	}
}

// find returns the cached document while it is fresh, otherwise one that is fetched once for all
// concurrent requests. A fresh document that is not enough is fetched again, but not twice within
// refetchInterval. When the fetch fails for a reason that says nothing about the client, find
// returns the last good document with this failure, from memory or the store, if mayServe allows
// that. enough reports whether the document has what the caller looks for.
func (c *fetchCache[T]) find(
	ctx context.Context, at oauth.ClientID, enough func(T) bool, mayServe func(*entry[T], time.Time) bool,
) (*entry[T], error) {
	now := c.directory.options.Now()
	known, _ := c.kept.Get(at.String())
	switch {
	case known.fresh(now) && (enough(known.value) || within(known.triedAt, refetchInterval, now)):
		return known, nil
	case mayServe(known, now) && known.failure != nil && within(known.triedAt, renewInterval, now):
		return known, nil
	}
	fetched, err := c.share(ctx, at, known)
	if err == nil || !client.IsOutage(err) {
		return fetched, err
	}
	if mayServe(known, now) {
		return known.afterFailure(err, now), nil
	}
	if known = c.load(ctx, at); !mayServe(known, now) {
		return nil, err
	}
	known = known.afterFailure(err, now)
	c.kept.Add(at.String(), known)
	return known, nil
}

// findExpired is find for clients with a grant, whose documents serve until client.KeysStaleFor
// after they have expired.
func (c *fetchCache[T]) findExpired(ctx context.Context, at oauth.ClientID, enough func(T) bool) (found T, err error) {
	document, err := c.find(ctx, at, enough, func(e *entry[T], now time.Time) bool {
		return e != nil && within(e.freshUntil, client.KeysStaleFor, now) && enough(e.value)
	})
	if err != nil {
		return found, err
	}
	if o := c.directory.options; document.failure != nil && !document.fresh(o.Now()) {
		o.Logger.InfoContext(ctx, "expired document stays in use because it cannot be renewed", "url", at.String(),
			"error", document.failure)
	}
	return document.value, nil
}

// share fetches the document once for all concurrent requests. A request that is canceled does not
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
		return nil, fmt.Errorf("%w: wait for the fetch: %w", client.ErrUnreachable, ctx.Err())
	}
}

// refresh fetches or revalidates the document, and caches it if it is valid. It fetches nothing if
// another request has done so since the caller read known.
func (c *fetchCache[T]) refresh(ctx context.Context, at oauth.ClientID, known *entry[T]) (*entry[T], error) {
	url, now := at.String(), c.directory.options.Now
	latest, _ := c.kept.Get(url)
	wasFresh := latest.fresh(now())
	if wasFresh && (latest != known || within(latest.triedAt, refetchInterval, now())) {
		return latest, nil
	}
	fetched, err := c.fetch(ctx, at, latest)
	switch {
	case err == nil:
		if wasFresh { // it lacked something: do not fetch it again within refetchInterval
			fetched.triedAt = now()
		}
		c.kept.Add(url, fetched)
	case client.IsWithdrawal(err):
		c.withdraw(ctx, url)
	case wasFresh && errors.Is(err, client.ErrBudget): // no fetch, so the next request may try at once
	case latest != nil:
		c.kept.Add(url, latest.afterFailure(err, now()))
	}
	return fetched, err
}

func (c *fetchCache[T]) fetch(ctx context.Context, at oauth.ClientID, known *entry[T]) (*entry[T], error) {
	d := c.directory
	if err := d.acquire(ctx, at, known != nil); err != nil {
		d.options.Limited.Observe(quota.Fetches, quota.Refused)
		return nil, err
	}
	defer d.slots.Release(1)
	ctx, cancel := context.WithTimeout(ctx, d.limits.fetch)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: build the request: %w", client.ErrUnreachable, err)
	}
	agent := "Pasteport (+" + d.options.Issuer + ")"
	request.Header = http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {agent}}
	if known != nil {
		maps.Copy(request.Header, known.conditions)
	}
	// The bare transport follows no redirect and keeps no cookie.
	response, err := d.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("%w: get the document: %w", client.ErrUnreachable, err)
	}
	defer response.Body.Close()
	d.answered(response)
	if response.StatusCode == http.StatusNotModified && known != nil && len(known.conditions) > 0 {
		return known.renewed(response.Header, d.options.Now()), nil
	}
	body, err := readDocument(response, c.bodyBytes)
	if err != nil {
		return nil, err
	}
	value, err := c.parse(ctx, at, body)
	if err != nil {
		return nil, err
	}
	return newEntry(value, body, response.Header, d.options.Now()), nil
}

// parse decodes and checks a document.
func (c *fetchCache[T]) parse(ctx context.Context, at oauth.ClientID, body []byte) (value T, err error) {
	members, err := strictjson.Object(body)
	if err != nil {
		return value, fmt.Errorf("%w: %w", client.ErrMalformed, err)
	}
	return c.read(ctx, at, members)
}

// load reads the document in the store, nil if there is none or the rules do not allow it any more.
func (c *fetchCache[T]) load(ctx context.Context, at oauth.ClientID) *entry[T] {
	if c.store == nil {
		return nil
	}
	stored, err := c.store.ClientDocument(ctx, at.String())
	if err != nil {
		c.warn(ctx, "cannot read a client's document in the store", at.String(), err)
		return nil
	}
	value, err := c.parse(ctx, at, stored.Body)
	if err != nil {
		c.warn(ctx, "stored document of a client is not used", at.String(), err)
		return nil
	}
	return &entry[T]{
		value:      value,
		body:       stored.Body,
		checkedAt:  stored.CheckedAt,
		freshUntil: stored.CheckedAt,
	}
}

// save copies a document from memory to the store, unless the store has one at least as new.
func (c *fetchCache[T]) save(ctx context.Context, url string) {
	known, found := c.kept.Peek(url)
	if !found || c.store == nil {
		return
	}
	if stored, err := c.store.ClientDocument(ctx, url); err == nil && !stored.CheckedAt.Before(known.checkedAt) {
		return
	}
	document := client.Document{URL: url, Body: known.body, CheckedAt: known.checkedAt}
	c.warn(ctx, "cannot store a client's document", url, c.store.SaveClientDocument(ctx, document))
}

// withdraw forgets a document that its client has withdrawn. It looks into the store first, because
// anybody can name documents that do not exist, and a deletion is a write.
func (c *fetchCache[T]) withdraw(ctx context.Context, url string) {
	c.kept.Remove(url)
	if c.store == nil {
		return
	}
	_, err := c.store.ClientDocument(ctx, url)
	if err == nil {
		err = c.store.DeleteClientDocument(ctx, url)
	}
	c.warn(ctx, "cannot delete a client's document in the store", url, err)
}

func (c *fetchCache[T]) warn(ctx context.Context, message, url string, err error) {
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		c.directory.options.Logger.WarnContext(ctx, message, "url", url, "error", err)
	}
}

// readDocument returns the body of a response with status 200, a JSON type and at most limit bytes;
// it decompresses gzip. For any other response it returns client.ErrNoDocument, which wraps
// client.ErrUnreachable; for a body that is incomplete or takes too long, client.ErrUnreachable.
func readDocument(response *http.Response, limit int64) (body []byte, err error) {
	if err := checkHead(response, limit); err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrNoDocument, err)
	}
	plain := io.Reader(response.Body)
	if strings.HasSuffix(encodingOf(response), "gzip") { // which some hosts send despite Accept-Encoding
		plain, err = gzip.NewReader(plain)
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(plain, limit+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: read the response: %w", client.ErrUnreachable, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%w: the response has more than %d bytes", client.ErrNoDocument, limit)
	}
	return body, nil
}

func encodingOf(response *http.Response) string {
	return strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ","))
}

func checkHead(response *http.Response, limit int64) error {
	switch {
	case response.StatusCode != http.StatusOK:
		return client.DocumentStatus(response.StatusCode)
	case !outbound.IsJSON(response.Header.Get("Content-Type")):
		return errors.New("the content type of the response is not JSON")
	case !slices.Contains([]string{"", "identity", "gzip", "x-gzip"}, encodingOf(response)):
		return errors.New("the response has a content encoding other than gzip")
	case response.ContentLength > limit:
		return fmt.Errorf("the response announces more than %d bytes", limit)
	}
	return nil
}
