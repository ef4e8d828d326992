package cimd

import (
	"context"
	"fmt"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/pasteport/pasteport/domain/oauth"
)

// shelf holds the documents of one kind that were valid when they were fetched (C36). read makes of the members of a document
// what it says.
type shelf[T any] struct {
	directory  *Directory
	bodyBytes  int64
	read       func(ctx context.Context, at oauth.ClientID, members map[string]any) (T, error)
	remembered *lru.Cache[string, *entry[T]]
	refetched  *lru.Cache[string, time.Time] // when a fresh document was fetched again
	flights    singleflight.Group
}

// refetchInterval is how often a fresh document may be fetched again because something is missing in it (C50, D33).
const refetchInterval = time.Minute

func newShelf[T any](d *Directory, size int, bodyBytes int64, read func(context.Context, oauth.ClientID, map[string]any) (T, error)) *shelf[T] {
	return &shelf[T]{directory: d, bodyBytes: bodyBytes, read: read, remembered: newLRU[*entry[T]](size), refetched: newLRU[time.Time](size)}
}

// find returns what is remembered while it is fresh, otherwise what is fetched once for everybody who asks meanwhile (C37, C39). A
// fresh document that is not enough is fetched again, but not twice within refetchInterval.
func (s *shelf[T]) find(ctx context.Context, at oauth.ClientID, enough func(T) bool) (found T, err error) {
	d := s.directory
	known, _ := s.remembered.Get(at.String())
	if known.fresh(d.options.Now()) && enough(known.value) {
		return known.value, nil
	}
	if s.refetchedLately(at) { // perhaps since known was read, so it is read again
		if latest, fresh := s.fresh(at); fresh {
			return latest, nil
		}
	}
	if err := d.budget.admits(ctx, oauth.RequesterFrom(ctx).Address(), d.options.Now()); err != nil {
		return found, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.limits.exchange)
	defer cancel()
	// Whoever asked first may hang up without failing the others.
	flight := s.flights.DoChan(at.String(), func() (any, error) { return s.refresh(context.WithoutCancel(ctx), at, known) })
	select {
	case landed := <-flight:
		found, _ = landed.Val.(T)
		return found, landed.Err
	case <-ctx.Done():
		return found, fmt.Errorf("%w: wait for the fetch: %w", oauth.ErrMetadataUnreachable, ctx.Err())
	}
}

// refetchedLately reports whether a fresh document at this URL was fetched again less than refetchInterval ago, with success or not.
func (s *shelf[T]) refetchedLately(at oauth.ClientID) bool {
	last, found := s.refetched.Get(at.String())
	since := s.directory.options.Now().Sub(last)
	return found && 0 <= since && since < refetchInterval
}

// fresh returns what is remembered and may still be used.
func (s *shelf[T]) fresh(at oauth.ClientID) (value T, ok bool) {
	known, _ := s.remembered.Get(at.String())
	if !known.fresh(s.directory.options.Now()) {
		return value, false
	}
	return known.value, true
}

// refresh fetches or revalidates the document within the budget, and remembers it if it is valid. It fetches nothing when an
// earlier flight landed after the caller's look, which saw known.
func (s *shelf[T]) refresh(ctx context.Context, at oauth.ClientID, known *entry[T]) (found T, err error) {
	d := s.directory
	latest, _ := s.remembered.Get(at.String())
	again := latest.fresh(d.options.Now())
	if again && (latest != known || s.refetchedLately(at)) {
		return latest.value, nil
	}
	leave, err := d.budget.enter(ctx, at, oauth.RequesterFrom(ctx).Address(), d.options.Now())
	if err != nil {
		return found, err
	}
	defer leave()
	if again { // noted when the fetch is over, so that those who ask meanwhile join it
		defer func() { s.refetched.Add(at.String(), d.options.Now()) }()
	}
	fetched, err := s.fetch(ctx, at, known)
	if err != nil {
		return found, err
	}
	s.remembered.Add(at.String(), fetched)
	return fetched.value, nil
}

func (s *shelf[T]) fetch(ctx context.Context, at oauth.ClientID, known *entry[T]) (*entry[T], error) {
	d := s.directory
	ctx, cancel := context.WithTimeout(ctx, d.limits.exchange)
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
	value, err := s.open(ctx, at, response)
	if err != nil {
		return nil, err
	}
	return newEntry(value, response.Header, d.options.Now()), nil
}

// open makes of the answer what it says about the client.
func (s *shelf[T]) open(ctx context.Context, at oauth.ClientID, response *http.Response) (value T, err error) {
	body, err := readDocument(response, s.bodyBytes, s.directory.options.AnyContentType)
	if err != nil {
		return value, fmt.Errorf("%w: %w", oauth.ErrMetadataNoDocument, err)
	}
	members, err := decodeDocument(body)
	if err != nil {
		return value, fmt.Errorf("%w: %w", oauth.ErrMetadataMalformed, err)
	}
	return s.read(ctx, at, members)
}
