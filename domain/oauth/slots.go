package oauth

import (
	"context"
	"net/netip"
	"strings"
	"time"
)

// Slots is a semaphore in whose queue networks take turns. Implementations are safe for concurrent
// use.
type Slots interface {
	// Acquire waits for a slot until ctx ends, and reports whether it had to. It fails at once when
	// too many claims are waiting. Calls of release after the first do nothing.
	Acquire(ctx context.Context, c Claim) (release func(), waited bool, err error)
}

// Claim is a request for a slot.
type Claim struct {
	// Network is the largest network around the requester. Claims without one count as one network.
	Network netip.Prefix
	// Quotas limit the slots that claims with the same key hold at the same time.
	Quotas []Quota
}

// Quota limits the claims with one key: a claim waits while they hold Max slots, which is at least
// 1, and fails if MaxWaiting of them wait already; 0 means no limit.
type Quota struct {
	Key             string
	Max, MaxWaiting int
}

// Fetch is a fetch of a client's document or key set.
type Fetch struct {
	At    ClientID
	By    Requester
	Known bool   // it was fetched before, or belongs to a client in use
	Slow  string // the target if its last fetch timed out: it has one slot. "" if it did not
}

// Host returns the host of the document in lower case, without port 443.
func (f Fetch) Host() string { return strings.TrimSuffix(strings.ToLower(f.At.Host()), ":443") }

// FetchLimit limits the fetches that anonymous requests can cause. Implementations are safe for
// concurrent use.
type FetchLimit interface {
	// Acquire waits for a slot, and reports whether it had to. It returns ErrMetadataBudget if the
	// requester has no fetches left or no slot becomes free in time, and ErrMetadataUnreachable
	// when ctx ends.
	Acquire(ctx context.Context, f Fetch, now time.Time) (release func(), waited bool, err error)

	// Count counts a fetch that begins.
	Count(f Fetch, now time.Time)

	// Full reports whether all slots are held.
	Full() bool
}
