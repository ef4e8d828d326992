// Package quota has what limits the use of a server by one address, by one person and by all
// together: Requester is the address, RateLimit and Lanes are ports, and Sessions counts the open
// ones. Metrics count each Effect of a Limit.
package quota

import "time"

// Limit names a limit in metrics.
type Limit string

// The limits that metrics count.
const (
	WrongTokens   Limit = "wrong_tokens"
	Verifications Limit = "verifications"
	Fetches       Limit = "fetches"
	UnknownTokens Limit = "unknown_tokens"
	Registrations Limit = "registrations"
	Sessions      Limit = "sessions"
	Grants        Limit = "grants"
	Calls         Limit = "calls"
)

// Limits returns every Limit.
func Limits() []Limit {
	return []Limit{WrongTokens, Verifications, Fetches, UnknownTokens, Registrations,
		Sessions, Grants, Calls}
}

// Effect is the effect of a limit on a request.
type Effect string

// The effects that metrics count.
const (
	Slowed  Effect = "slowed"  // it waited
	Refused Effect = "refused" // it got an error
	Evicted Effect = "evicted" // it replaced an older session or connection
)

// Effects returns every Effect.
func Effects() []Effect { return []Effect{Slowed, Refused, Evicted} }

// Observer is called for each effect of a limit. It is safe for concurrent use and never
// blocks.
type Observer func(Limit, Effect)

// Observe calls the observer, if there is one.
func (o Observer) Observe(limit Limit, effect Effect) {
	if o != nil {
		o(limit, effect)
	}
}

// Rate is what happens now, and how much of it may happen in a minute, as at once.
type Rate struct {
	Of        string // such as the calls of a person
	Events    int
	PerMinute int
}

// RateLimit limits events by rates. Each process counts separately.
type RateLimit interface {
	// Take counts the events and returns 0. If a rate does not allow its events now, Take counts
	// nothing for any rate and returns when all of them will.
	Take(now time.Time, rates ...Rate) (wait time.Duration)
}
