// Package attempt records attempts to connect a client, each across all its requests, so that an
// operator sees at which step one failed and why, or which step is missing. A Recorder notes the
// steps of a request in a Journal, and a Log stores one Attempt for all requests with the same
// ticket. It uses no cookie and stores no secret.
package attempt

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Kind is what happened in a step, such as a request or the issue of a code. A client with cached
// metadata skips some.
type Kind string

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

// Discovery are the steps before the client sends its client_id, and InBrowser those in a person's
// browser. A stranger can cause any of them, because none needs a secret of the attempt.
var (
	Discovery = []Kind{Challenge, ResourceMetadata, ServerMetadata, Registration}
	InBrowser = []Kind{Authorize, ClientMetadata, Page, TokenJudged}
)

// Is reports whether the kind is among those.
func (k Kind) Is(among []Kind) bool { return slices.Contains(among, k) }

// Outcome is the result of a step.
type Outcome string

const (
	Passed  Outcome = "ok"
	Refused Outcome = "refused" // an error of the client or the person
	Failed  Outcome = "failed"  // an error of this server or the site
)

// Step is an event of an attempt to connect.
type Step struct {
	At      time.Time `json:"at"`
	Kind    Kind      `json:"step"`
	Outcome Outcome   `json:"outcome"`
	Request string    `json:"request,omitempty"` // id of the request in the log and on pages
	Rule    string    `json:"rule,omitempty"`    // of the catalogue
	Reason  string    `json:"reason,omitempty"`
}

// Entry is a step with what its request says about the attempt.
type Entry struct {
	Step
	Attempt string // the id of the ticket and of its grant; "" before the ticket
	Client  string
	Address string // a network
	Agent   string
}

// Progress is how far an attempt has come.
type Progress int

const (
	Begun   Progress = iota
	Granted          // a right token was pasted
	Used             // the client has made a call
	Over             // the grant has ended
)

// Attempt is what is known about an attempt to connect.
type Attempt struct {
	ID       string    `json:"id"`
	Client   string    `json:"client_id,omitempty"`
	Agent    string    `json:"user_agent,omitempty"` // of the browser until the client sends a request
	Address  string    `json:"network,omitempty"`
	Begun    time.Time `json:"begun"`
	At       time.Time `json:"at"` // of the newest step
	Progress Progress  `json:"-"`
	Last     Step      `json:"-"` // the one that decides the verdict
	Steps    []Step    `json:"steps"`
}

const maxSteps = 30 // of an attempt; of too many, those in the middle go

// Add adds the step of an entry. Replicas may write steps late.
func (a *Attempt) Add(e Entry) {
	a.Client = cmp.Or(a.Client, e.Client)
	// The client's agent replaces the browser's. Any agent replaces doctor's, which lists hide.
	replaces := a.Agent == "" || IsDoctor(a.Agent) || !IsDoctor(e.Agent) && !e.Kind.Is(InBrowser)
	if e.Agent != "" && replaces {
		a.Agent, a.Address = e.Agent, e.Address
	}
	if a.isDecidedBy(e.Step) { // before At and Progress change, on which it depends
		a.Last = e.Step
	}
	if a.At.Before(e.At) {
		a.At = e.At
	}
	switch isProof := !e.Kind.Is(Discovery) && !e.Kind.Is(InBrowser); {
	case e.Kind == Ended:
		a.Progress = Over
	case e.Kind == Call && e.Outcome == Passed:
		a.Progress = max(a.Progress, Used)
	case isProof && e.Attempt != "":
		a.Progress = max(a.Progress, Granted)
	}
	// A step replaces an equal one before it, except in the browser, whose pages show the request.
	i := len(a.Steps)
	for i > 0 && a.Steps[i-1].At.After(e.At) {
		i--
	}
	if i > 0 && !e.Kind.Is(InBrowser) {
		before := a.Steps[i-1]
		before.At, before.Request = e.At, e.Request
		if before == e.Step {
			i--
			a.Steps = slices.Delete(a.Steps, i, i+1)
		}
	}
	if a.Steps = slices.Insert(a.Steps, i, e.Step); len(a.Steps) > maxSteps {
		a.Steps = slices.Delete(a.Steps, maxSteps/2, maxSteps/2+1)
	}
}

// IsDoctor reports whether a user agent is that of pasteport doctor. Any sender may claim it.
func IsDoctor(agent string) bool {
	name, _, _ := strings.Cut(agent, "/")
	return name == "pasteport-doctor"
}

// isDecidedBy reports whether the step replaces Last. The end of a grant does, for good, and
// otherwise the newest step. Of the steps of discovery the furthest stays, because some clients try
// several paths or begin again with another transport.
func (a *Attempt) isDecidedBy(step Step) bool {
	rank, last := slices.Index(Discovery, step.Kind), slices.Index(Discovery, a.Last.Kind)
	switch {
	case a.Progress == Over || step.Kind == Ended:
		return step.Kind == Ended
	case rank < 0 || rank > last:
		return !step.At.Before(a.At)
	}
	return rank == last && (step.Outcome == Passed || a.Last.Outcome != Passed)
}

// Journal receives the steps of all Recorders. It sets their time, does not block, and may lose
// steps.
type Journal interface{ Note(entry Entry) }

// Log stores attempts, for a limited time and in a limited number.
type Log interface {
	// ChangeAttempts reads the attempts with the ids, and stores those that change returns, in one
	// transaction.
	ChangeAttempts(ctx context.Context, ids []string, change func(found []Attempt) []Attempt) error
	// Attempts returns the attempts with a step at or after since, the newest first.
	Attempts(ctx context.Context, since time.Time) ([]Attempt, error)
	// ForgetAttempts deletes the attempts without a step at or after before. It keeps at most keep
	// attempts that led to a grant, and keep others, the newest of each, so that anonymous requests
	// cannot displace grants. It returns how many it deleted.
	ForgetAttempts(ctx context.Context, before time.Time, keep int) (int, error)
}

// Memory is how long attempts are kept after their newest step, and Capacity the maximum number
// with a grant, and without one. Within Renewal the calls of a client are noted once.
const (
	Memory   = 7 * 24 * time.Hour
	Capacity = 5_000
	Renewal  = 24 * time.Hour
)
