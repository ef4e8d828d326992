package trace

import (
	"context"
	"time"
)

// Kind is a step that a client has to take.
type Kind string

// The steps in their order. A client may skip those that it remembers from before.
const (
	Challenge        Kind = "challenge"
	ResourceMetadata Kind = "resource_metadata"
	ServerMetadata   Kind = "server_metadata"
	Registration     Kind = "registration" // which there is none of
	Authorize        Kind = "authorize"
	ClientMetadata   Kind = "client_metadata"
	Page             Kind = "page"
	TokenJudged      Kind = "token_judged"
	CodeIssued       Kind = "code_issued"
	Exchange         Kind = "exchange"
	Stream           Kind = "stream"
	Call             Kind = "call"
	Refresh          Kind = "refresh"
	Ended            Kind = "ended"
)

// Outcome is what came of a step.
type Outcome string

// Failed is our fault or the site's, Refused somebody else's.
const (
	Passed  Outcome = "ok"
	Refused Outcome = "refused"
	Failed  Outcome = "failed"
)

// Step is one thing that happened on the way to a connection. Nothing in it is a secret.
type Step struct {
	Number  int64     `json:"number"` // in the order in which they were stored
	At      time.Time `json:"at"`
	Kind    Kind      `json:"step"`
	Outcome Outcome   `json:"outcome"`
	Attempt string    `json:"attempt,omitempty"` // the consent ticket's id, which is the grant's later on; "" before there is one
	Request string    `json:"request,omitempty"` // under which the log and the page know the request
	Client  string    `json:"client_id,omitempty"`
	Address string    `json:"network,omitempty"`
	Agent   string    `json:"user_agent,omitempty"`
	Rule    string    `json:"rule,omitempty"` // of the catalogue
	Reason  string    `json:"reason,omitempty"`
}

// Journal takes notes without holding anybody up; it may lose some.
type Journal interface {
	Note(step Step)
	// Knows reports that a step of this kind of the attempt has passed not long ago, so that it need not be noted again.
	Knows(attempt string, kind Kind, at time.Time) bool
}

// Log keeps steps, for a bounded time and in a bounded number.
type Log interface {
	AddSteps(ctx context.Context, steps []Step) error
	// Steps returns what was added after the step of that number, the oldest first.
	Steps(ctx context.Context, after int64) ([]Step, error)
	// ForgetSteps forgets what is older than before, or beyond the newest keep of those whose attempt has a step that is not Unproven,
	// and of the others. It returns how many there were.
	ForgetSteps(ctx context.Context, before time.Time, keep int) (int, error)
}

// How long steps are kept, and how many at most that belong to a grant and that do not.
const (
	Memory   = 7 * 24 * time.Hour
	Capacity = 10_000
)

// Renewal is how often the calls of a connection are noted, so that the trace knows that it is used after its beginning is forgotten.
const Renewal = 24 * time.Hour

// Unproven are the steps that anybody can take; all others of an attempt need a secret of its grant, or are our own.
var Unproven = []Kind{Challenge, ResourceMetadata, ServerMetadata, Registration, Authorize, ClientMetadata, Page, TokenJudged}
