package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Origin is the id, the client network and the user agent of a request.
type Origin struct {
	Request string
	Address string
	Agent   string
}

// Recorder records the steps of one request.
type Recorder struct {
	journal         Journal // nil for none
	now             func() time.Time
	origin          Origin // resolved after once
	resolve         func(Origin) Origin
	once            sync.Once
	attempt, client string
	rule            string // of the last refusal
	steps           []Step // without what is the same for all steps of a request
	asksRevision    bool   // the last step
}

// OlderRevision is the reason of a refused server/discover, after which clients go on with
// initialize.
const OlderRevision = "The server speaks an older revision of MCP than the client asked for."

type recorderKey struct{}

// recorderContext is a context with a Recorder.
type recorderContext struct {
	context.Context
	recorder Recorder
}

// Value implements context.Context.
func (c *recorderContext) Value(key any) any {
	if key == (recorderKey{}) {
		return &c.recorder
	}
	return c.Context.Value(key)
}

// Begin returns a context with a Recorder for the request. resolve returns the origin to record. It
// is called at the first use, because most requests record nothing.
func Begin(ctx context.Context, origin Origin, resolve func(Origin) Origin) context.Context {
	return &recorderContext{ctx, Recorder{origin: origin, resolve: resolve}}
}

func (r *Recorder) resolved() Origin {
	r.once.Do(func() { r.origin = r.resolve(r.origin) })
	return r.origin
}

// SetJournal sets the journal and the clock. Steps before it are not recorded.
func (r *Recorder) SetJournal(journal Journal, now func() time.Time) { r.journal, r.now = journal, now }

// From returns the Recorder of ctx, nil when it has none. The methods of a nil Recorder do nothing.
func From(ctx context.Context) *Recorder {
	recorder, _ := ctx.Value(recorderKey{}).(*Recorder)
	return recorder
}

// Without returns a context without a Recorder, for background work of a request.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, recorderKey{}, (*Recorder)(nil))
}

// Request returns the id of the request, "" when it has none.
func (r *Recorder) Request() string {
	if r == nil {
		return ""
	}
	return r.resolved().Request
}

// Identify sets the attempt and the client of the steps. An empty argument changes nothing.
func (r *Recorder) Identify(attempt, client string) {
	if r == nil {
		return
	}
	if attempt != "" {
		r.attempt = attempt
	}
	if client != "" {
		r.client = client
	}
}

// Record adds a step, which counts as passed unless Refuse or Answer follows.
func (r *Recorder) Record(kind Kind) {
	if r == nil || r.journal == nil {
		return
	}
	r.steps, r.asksRevision = append(r.steps, Step{At: r.now(), Kind: kind, Outcome: Passed}), false
}

// last returns the last step. Without one, what is done to it has no effect.
func (r *Recorder) last() *Step {
	if r == nil || len(r.steps) == 0 {
		return new(Step)
	}
	return &r.steps[len(r.steps)-1]
}

// AsksRevision marks the last step as one that asks whether the MCP server
// speaks the newest revision.
func (r *Recorder) AsksRevision() {
	if r != nil {
		r.asksRevision = true
	}
}

// Refuse sets the outcome and the reason of the last step.
func (r *Recorder) Refuse(err error) {
	if r == nil {
		return
	}
	last := r.last()
	last.Outcome, last.Rule, last.Reason = explain(err)
	r.rule = last.Rule
}

// Rule returns the rule of the last refusal, "" for none. It is known without a journal, too.
func (r *Recorder) Rule() string {
	if r == nil {
		return ""
	}
	return r.rule
}

// Explain sets the rule and the reason of the last step, which still counts as passed.
func (r *Recorder) Explain(err error) {
	last := r.last()
	_, last.Rule, last.Reason = explain(err)
}

// RefuseAt is Refuse for a request that may have recorded no step. Then it records the given one.
func (r *Recorder) RefuseAt(kind Kind, err error) {
	if r != nil && len(r.steps) == 0 && kind != "" {
		r.Record(kind)
	}
	r.Refuse(err)
}

// Answer sets the outcome of an MCP call by the status of the response, and then calls End.
func (r *Recorder) Answer(status int) {
	last := r.last()
	if status >= 400 && last.Outcome == Passed && (last.Kind == Call || last.Kind == Stream) {
		last.Outcome, last.Reason = Refused, fmt.Sprintf("The answer was HTTP %d.", status)
		switch {
		case status >= 500:
			last.Outcome = Failed
		case status == 400 && r.asksRevision:
			last.Reason = OlderRevision
		}
	}
	r.End()
}

// End writes the recorded steps to the journal. More steps may follow.
func (r *Recorder) End() {
	if r == nil {
		return
	}
	for _, step := range r.steps {
		if step.Outcome == Passed && r.journal.HasRecent(r.attempt, step.Kind, step.At) {
			continue
		}
		from := r.resolved()
		step.Attempt, step.Client = r.attempt, shorten(r.client)
		step.Request, step.Address, step.Agent = from.Request, from.Address, shorten(from.Agent)
		r.journal.Note(step)
	}
	r.steps = nil
}

// explain uses only the texts of refusals, because those of other errors may contain secrets.
func explain(err error) (outcome Outcome, rule, reason string) {
	var refused *oauth.Error
	switch {
	case !errors.As(err, &refused):
		return Failed, "", "This service could not answer. The log has the cause."
	case refused.Kind.Code() == oauth.TemporarilyUnavailable.Code():
		return Failed, refused.Rule, shorten(refused.Detail())
	}
	return Refused, refused.Rule, shorten(refused.Detail())
}

const maxTextLength = 300 // bytes

// shorten truncates a text of a client, masks tokens of this server in it, and replaces all but
// printable ASCII, because terminals show it.
func shorten(text string) string {
	printable := strings.Map(func(c rune) rune {
		if c == '\n' { // of errors.Join
			return ' '
		}
		if c < 0x20 || c > 0x7e {
			return '?'
		}
		return c
	}, oauth.MaskTokens(text))
	return printable[:min(len(printable), maxTextLength)]
}
