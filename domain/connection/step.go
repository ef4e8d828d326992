package connection

import (
	"cmp"
	"context"
	"strings"
	"time"
)

// Kind is what happened in a step, such as a request or the issue of a code.
type Kind string

// The kinds in the order of an attempt. A client with cached metadata skips some.
const (
	Challenge        Kind = "challenge"
	ResourceMetadata Kind = "resource_metadata"
	ServerMetadata   Kind = "server_metadata"
	Registration     Kind = "registration" // refused dynamic registration; an accepted one writes nothing
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

// names are those of the kinds whose names are not their texts.
var names = map[Kind]string{
	Authorize: "authorization request",
	Page:      "consent page",
	Exchange:  "code exchanged",
	Stream:    "stream opened",
	Call:      "MCP call",
}

// Name returns the name of the step for people.
func (k Kind) Name() string { return cmp.Or(names[k], strings.ReplaceAll(string(k), "_", " ")) }

// Outcome is the result of a step.
type Outcome string

// Refused is an error of the client or the person, Failed an error of this server or the site.
const (
	Passed  Outcome = "ok"
	Refused Outcome = "refused"
	Failed  Outcome = "failed"
)

// Step is an event of an attempt to connect. It contains no secret.
type Step struct {
	Number  int64     `json:"number"` // ascending in the order of storage
	At      time.Time `json:"at"`
	Kind    Kind      `json:"step"`
	Outcome Outcome   `json:"outcome"`
	Attempt string    `json:"attempt,omitempty"` // the id of the ticket and of its grant; "" before the ticket
	Request string    `json:"request,omitempty"` // id of the request in the log and on pages
	Client  string    `json:"client_id,omitempty"`
	Address string    `json:"network,omitempty"`
	Agent   string    `json:"user_agent,omitempty"`
	Rule    string    `json:"rule,omitempty"` // of the catalogue
	Reason  string    `json:"reason,omitempty"`
}

// Journal receives the steps of all Recorders. It does not block, and may lose steps.
type Journal interface {
	Note(step Step)
	// HasRecent reports whether such a step was noted recently, so that it need not be noted again.
	HasRecent(attempt string, kind Kind, at time.Time) bool
}

// Log stores steps, for a limited time and in a limited number.
type Log interface {
	AddSteps(ctx context.Context, steps []Step) error
	// Steps returns the steps after that number, the oldest first.
	Steps(ctx context.Context, after int64) ([]Step, error)
	// ForgetSteps deletes the steps that are older than before. Of the others it keeps the
	// newest, of attempts that led to a grant and of the rest, so that anonymous requests cannot
	// displace steps of grants. It returns how many it deleted.
	ForgetSteps(ctx context.Context, before time.Time, keep int) (int, error)
}

// Memory is how long steps are kept. Capacity is the maximum number of steps with a grant, and of
// steps without one.
const (
	Memory   = 7 * 24 * time.Hour
	Capacity = 10_000
)

// Renewal is the interval in which the calls of a connection are noted again, so that its use is
// visible after its first steps are deleted.
const Renewal = 24 * time.Hour

// Unproven are the steps that need no secret. Every other step of an attempt needs a secret of its
// grant, or comes from this server.
var Unproven = []Kind{Challenge, ResourceMetadata, ServerMetadata, Registration, Authorize, ClientMetadata, Page,
	TokenJudged}
