// Package quota limits the use of a server by one address, by one person and by all together:
// Requester is the address, RateLimit and Lanes are ports, and OpenSessions bounds the sessions.
// Metrics count each Effect of a Limit.
package quota

import (
	"context"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
)

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
	Slowed  Effect = "slowed"  // the request waited
	Refused Effect = "refused" // the request got an error
	Evicted Effect = "evicted" // the request ended an older session or connection
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

// Rate is a number of events of one kind, and the limit for that kind.
type Rate struct {
	Of        string // the kind, such as the calls of a person
	Events    int    // how many happen now
	PerMinute int    // how many may happen in a minute, also all at once
}

// RateLimit limits events by rates. Each process counts separately.
type RateLimit interface {
	// Take counts the events and returns 0. If one rate does not allow its events now, Take counts
	// nothing for any rate, and returns the time until all rates allow theirs.
	Take(now time.Time, rates ...Rate) (wait time.Duration)
}

// Guess is a host token that somebody presents, before it is checked.
type Guess struct {
	By       Requester
	Token    seal.Fingerprint
	Resource string // whose verifier checks the token; "" on the connections page, which asks none
	AtOnce   bool   // it is refused if it would have to wait, because a client has sent it with a request
}

// Result is what a check has found.
type Result int

// The results of a check.
const (
	Undecided Result = iota // the verifier failed
	Right
	Wrong
)

// Lanes makes requests take turns if their network presents many wrong tokens. Implementations are
// safe for concurrent use.
type Lanes interface {
	// Enter returns when the token may be checked. The caller then calls leave once, with the
	// result. Enter refuses with WrongHostToken (it was wrong a moment ago), TooManyGuesses (too
	// many of the network wait, or it is AtOnce and has to wait) or HostTokenNotVerifiable (checks
	// for the network take too long).
	Enter(ctx context.Context, guess Guess) (leave func(Result), err error)
	// Remember records, like leave with Right, that a resource's verifier knows a token. It is for
	// checks without a lane, such as at a refresh.
	Remember(token seal.Fingerprint, resource string)
}
