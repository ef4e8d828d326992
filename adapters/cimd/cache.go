package cimd

import (
	"cmp"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pquerna/cachecontrol/cacheobject"

	"github.com/pasteport/pasteport/domain/oauth/client"
)

// A document is fresh for at least minFresh and at most maxFresh, whatever its headers say.
const (
	minFresh = time.Minute
	maxFresh = 24 * time.Hour
)

// entry is a valid document. It is immutable; a renewed entry replaces it.
type entry[T any] struct {
	value      T
	body       []byte
	conditions http.Header // of a request that revalidates it
	checkedAt  time.Time   // when it was last fetched or revalidated
	freshUntil time.Time   // by its HTTP headers
	triedAt    time.Time   // of the last fetch that failed, or was made while an entry was fresh; zero for none
	failure    error       // of the failed fetch, if it says nothing about the client
}

// newEntry returns a document, whose headers determine its freshness. checkedAt has the precision
// of a client.DocumentStore, so that it equals the time in the store.
func newEntry[T any](value T, body []byte, header http.Header, now time.Time) *entry[T] {
	conditions := http.Header{}
	for condition, validator := range map[string]string{"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"} {
		if header.Get(validator) != "" {
			conditions.Set(condition, header.Get(validator))
		}
	}
	return &entry[T]{
		value:      value,
		body:       body,
		conditions: conditions,
		checkedAt:  now.Truncate(time.Millisecond),
		freshUntil: now.Add(freshness(header)),
	}
}

// fresh reports whether the document may be used, for at most maxFresh even if the clock is set
// back.
func (e *entry[T]) fresh(now time.Time) bool {
	return e != nil && now.Before(e.freshUntil) && e.freshUntil.Sub(now) <= maxFresh
}

// wasGood reports whether the document was good less than client.DocumentStaleFor ago.
func (e *entry[T]) wasGood(now time.Time) bool {
	return e != nil && within(e.checkedAt, client.DocumentStaleFor, now)
}

// within reports whether at is less than interval before now. It is false for a time after now,
// when the clock was ahead.
func within(at time.Time, interval time.Duration, now time.Time) bool {
	age := now.Sub(at)
	return 0 <= age && age < interval
}

// renewed returns the entry after a 304, whose headers determine its freshness.
func (e *entry[T]) renewed(header http.Header, now time.Time) *entry[T] {
	next, conditions := newEntry(e.value, e.body, header, now), maps.Clone(e.conditions)
	maps.Copy(conditions, next.conditions)
	next.conditions = conditions
	return next
}

// afterFailure returns the entry after a failed fetch.
func (e *entry[T]) afterFailure(err error, now time.Time) *entry[T] {
	next := *e
	if next.triedAt, next.failure = now, nil; client.IsOutage(err) {
		next.failure = err
	}
	return &next
}

// freshness returns how long a response is fresh, between minFresh and maxFresh. Invalid headers
// count as zero.
func freshness(header http.Header) time.Duration {
	age, err := strconv.ParseUint(cmp.Or(header.Get("Age"), "0"), 10, 31)
	if err != nil {
		return minFresh
	}
	return min(max(lifetime(header)-time.Duration(age)*time.Second, minFresh), maxFresh)
}

func lifetime(header http.Header) time.Duration {
	control, err := cacheobject.ParseResponseCacheControl(strings.Join(header.Values("Cache-Control"), ", "))
	switch {
	case err != nil, control.NoStore, control.NoCachePresent, control.PrivatePresent:
		return 0
	case control.SMaxAge >= 0:
		return time.Duration(control.SMaxAge) * time.Second
	case control.MaxAge >= 0:
		return time.Duration(control.MaxAge) * time.Second
	}
	expires, badExpires := http.ParseTime(header.Get("Expires"))
	date, badDate := http.ParseTime(header.Get("Date"))
	if badExpires != nil || badDate != nil {
		return 0
	}
	return expires.Sub(date)
}
