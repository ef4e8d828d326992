package cimd

import (
	"cmp"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pquerna/cachecontrol/cacheobject"

	"github.com/pasteport/pasteport/domain/oauth"
)

// A document is fresh for at least minFresh and at most maxFresh, for any response headers.
const (
	minFresh = time.Minute
	maxFresh = 24 * time.Hour
)

// entry is a valid document. It is immutable; a renewed entry replaces it.
type entry[T any] struct {
	oauth.ClientDocument
	value  T
	stored bool // the store has it too
	tried  attempt
}

// attempt is a fetch that has not renewed a document: it failed for a reason that says nothing
// about the client, or the document was still fresh. The zero value is none.
type attempt struct {
	at  time.Time
	err error
}

// newEntry returns a document, whose headers determine its freshness.
func newEntry[T any](document oauth.ClientDocument, value T, header http.Header, now time.Time) *entry[T] {
	document.ETag, document.LastModified = header.Get("ETag"), header.Get("Last-Modified")
	document.CheckedAt, document.FreshUntil = now, now.Add(freshness(header))
	return &entry[T]{ClientDocument: document, value: value}
}

// fresh reports whether the document may be used, for at most maxFresh even if the clock is set
// back.
func (e *entry[T]) fresh(now time.Time) bool {
	return e != nil && now.Before(e.FreshUntil) && e.FreshUntil.Sub(now) <= maxFresh
}

// stale reports whether the document has expired, less than oauth.KeysStaleFor ago.
func (e *entry[T]) stale(now time.Time) bool {
	return e != nil && within(e.FreshUntil, oauth.KeysStaleFor, now)
}

// wasGood reports whether the document was good less than oauth.MetadataStaleFor ago.
func (e *entry[T]) wasGood(now time.Time) bool {
	return e != nil && within(e.CheckedAt, oauth.MetadataStaleFor, now)
}

// addConditions makes a request conditional if there is a document with a validator.
func (e *entry[T]) addConditions(header http.Header) (conditional bool) {
	if e == nil {
		return false
	}
	if e.ETag != "" {
		header.Set("If-None-Match", e.ETag)
	}
	if e.LastModified != "" {
		header.Set("If-Modified-Since", e.LastModified)
	}
	return e.ETag != "" || e.LastModified != ""
}

// renewed returns the entry after a 304, whose headers determine its freshness.
func (e *entry[T]) renewed(header http.Header, now time.Time) *entry[T] {
	next := newEntry(e.ClientDocument, e.value, header, now)
	next.ETag, next.LastModified = cmp.Or(next.ETag, e.ETag), cmp.Or(next.LastModified, e.LastModified)
	return next
}

// afterFailure returns the entry after a failed fetch.
func (e *entry[T]) afterFailure(err error, now time.Time) *entry[T] {
	next := *e
	if next.tried = (attempt{at: now}); oauth.IsMetadataOutage(err) {
		next.tried.err = err
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
		return seconds(control.SMaxAge)
	case control.MaxAge >= 0:
		return seconds(control.MaxAge)
	}
	expires, badExpires := http.ParseTime(header.Get("Expires"))
	date, badDate := http.ParseTime(header.Get("Date"))
	if badExpires != nil || badDate != nil {
		return 0
	}
	return expires.Sub(date)
}

// seconds returns zero for the parser's maximum, which it returns for all larger numbers.
func seconds(delta cacheobject.DeltaSeconds) time.Duration {
	if delta == math.MaxInt32 {
		return 0
	}
	return time.Duration(delta) * time.Second
}
