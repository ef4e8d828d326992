package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Origin is where a request came from.
type Origin struct {
	Request string
	Address string
	Agent   string
}

// Recorder records the steps of one request.
type Recorder struct {
	journal Journal // nil: nothing is noted
	now     func() time.Time
	from    Origin // before and after resolve
	resolve func(Origin) Origin
	once    sync.Once
	attempt string
	client  string
	steps   []reached
	first   [1]reached // backs steps: most requests have one
}

// reached is a step without the fields that all steps of a request share.
type reached struct {
	at           time.Time
	kind         Kind
	outcome      Outcome
	rule, reason string
}

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

// Begin returns a context with a Recorder for the request. resolve turns the origin of the request into the one to publish; it is called once, when
// the origin is first used, because most requests never use it.
func Begin(ctx context.Context, from Origin, resolve func(Origin) Origin) context.Context {
	return &recorderContext{ctx, Recorder{from: from, resolve: resolve}}
}

func (r *Recorder) origin() Origin {
	r.once.Do(func() { r.from = r.resolve(r.from) })
	return r.from
}

// NoteIn sets the journal for the steps that are recorded from now on.
func (r *Recorder) NoteIn(journal Journal, now func() time.Time) { r.journal, r.now = journal, now }

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
	return r.origin().Request
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

// Record begins the next step. The step before it has passed.
func (r *Recorder) Record(kind Kind) {
	if r == nil || r.journal == nil {
		return
	}
	if r.steps == nil {
		r.steps = r.first[:0]
	}
	r.steps = append(r.steps, reached{at: r.now(), kind: kind, outcome: Passed})
}

// Refuse records why the last step did not pass.
func (r *Recorder) Refuse(err error) {
	if r == nil || len(r.steps) == 0 {
		return
	}
	last := &r.steps[len(r.steps)-1]
	last.outcome, last.rule, last.reason = explain(err)
}

// RefuseAt is Refuse for a request that may not have recorded a step yet.
func (r *Recorder) RefuseAt(kind Kind, err error) {
	if r != nil && len(r.steps) == 0 && kind != "" {
		r.Record(kind)
	}
	r.Refuse(err)
}

// Answer records the status of the answer, which is the only result of an MCP call, and then does what End does.
func (r *Recorder) Answer(status int) {
	if r != nil && len(r.steps) > 0 {
		last := &r.steps[len(r.steps)-1]
		called := last.outcome == Passed && (last.kind == Call || last.kind == Stream)
		switch {
		case called && status >= 500:
			last.outcome, last.reason = Failed, fmt.Sprintf("The answer was HTTP %d.", status)
		case called && status >= 400:
			last.outcome, last.reason = Refused, fmt.Sprintf("The answer was HTTP %d.", status)
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
		if step.outcome == Passed && r.journal.Knows(r.attempt, step.kind, step.at) {
			continue
		}
		from := r.origin()
		r.journal.Note(Step{
			At: step.at, Kind: step.kind, Outcome: step.outcome, Rule: step.rule, Reason: step.reason,
			Attempt: r.attempt, Client: shorten(r.client),
			Request: from.Request, Address: from.Address, Agent: shorten(from.Agent),
		})
	}
	r.steps = nil
}

// explain uses the text of a refusal only, because the text of any other error may contain anything.
func explain(err error) (outcome Outcome, rule, reason string) {
	var refused *oauth.Error
	switch {
	case !errors.As(err, &refused):
		return Failed, "", "This service could not answer; the log says why."
	case refused.Kind.Code() == oauth.TemporarilyUnavailable.Code():
		return Failed, refused.Rule, shorten(refused.Detail())
	}
	return Refused, refused.Rule, shorten(refused.Detail())
}

const maxTextLength = 300 // bytes

// shorten cuts a text that a client controls and replaces all but printable ASCII, because terminals show it.
func shorten(text string) string {
	printable := strings.Map(func(c rune) rune {
		if c == '\n' { // between two causes
			return ' '
		}
		if c < 0x20 || c > 0x7e {
			return '?'
		}
		return c
	}, text)
	return printable[:min(len(printable), maxTextLength)]
}
