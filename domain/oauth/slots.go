package oauth

import (
	"context"
	"net/netip"
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
