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

// Origin says where a request came from.
type Origin struct {
	Request string
	Address string
	Agent   string
}

// Walk is the way of one request through its steps.
type Walk struct {
	journal Journal // nil: nothing is noted
	now     func() time.Time
	from    Origin // as it came
	known   func(came Origin) Origin
	asked   sync.Once
	attempt string
	client  string
	steps   []reached
	first   [1]reached // the room for most requests' only one
}

// reached is what one step has of its own.
type reached struct {
	at           time.Time
	kind         Kind
	outcome      Outcome
	rule, reason string
}

type walkKey struct{}

// walking is the context of a walk.
type walking struct {
	context.Context
	walk Walk
}

// Value implements context.Context.
func (w *walking) Value(key any) any {
	if key == (walkKey{}) {
		return &w.walk
	}
	return w.Context.Value(key)
}

// Begin lets the request under the returned context be known by its origin, and its steps be noted once there is a journal. Most
// requests' origin is never asked for; known makes of it, as it came, what may be told.
func Begin(ctx context.Context, came Origin, known func(came Origin) Origin) context.Context {
	return &walking{ctx, Walk{from: came, known: known}}
}

func (w *Walk) origin() Origin {
	w.asked.Do(func() { w.from = w.known(w.from) })
	return w.from
}

// NoteIn says where the steps that are reached from now on are noted.
func (w *Walk) NoteIn(journal Journal, now func() time.Time) { w.journal, w.now = journal, now }

// From returns the walk under ctx. Without one there is nobody to note anything for, and every method does nothing.
func From(ctx context.Context) *Walk {
	walk, _ := ctx.Value(walkKey{}).(*Walk)
	return walk
}

// Without returns the context for what happens beside a request, of which nothing is noted.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, walkKey{}, (*Walk)(nil))
}

// Request returns under which name the request is known, "" when it is not.
func (w *Walk) Request() string {
	if w == nil {
		return ""
	}
	return w.origin().Request
}

// About says whose steps these are; what is not known stays "".
func (w *Walk) About(attempt, client string) {
	if w == nil {
		return
	}
	if attempt != "" {
		w.attempt = attempt
	}
	if client != "" {
		w.client = client
	}
}

// Reach begins the next step; the one before it has passed.
func (w *Walk) Reach(kind Kind) {
	if w == nil || w.journal == nil {
		return
	}
	if w.steps == nil {
		w.steps = w.first[:0]
	}
	w.steps = append(w.steps, reached{at: w.now(), kind: kind, outcome: Passed})
}

// Refuse says why the step that was reached last did not pass.
func (w *Walk) Refuse(err error) {
	if w == nil || len(w.steps) == 0 {
		return
	}
	last := &w.steps[len(w.steps)-1]
	last.outcome, last.rule, last.reason = explain(err)
}

// RefuseAt is Refuse for a request that may not have reached anything yet.
func (w *Walk) RefuseAt(kind Kind, err error) {
	if w != nil && len(w.steps) == 0 && kind != "" {
		w.Reach(kind)
	}
	w.Refuse(err)
}

// Answer ends the walk now that the status of the answer is known: the MCP layer refuses with nothing else.
func (w *Walk) Answer(status int) {
	if w != nil && len(w.steps) > 0 {
		last := &w.steps[len(w.steps)-1]
		called := last.outcome == Passed && (last.kind == Call || last.kind == Stream)
		switch {
		case called && status >= 500:
			last.outcome, last.reason = Failed, fmt.Sprintf("The answer was HTTP %d.", status)
		case called && status >= 400:
			last.outcome, last.reason = Refused, fmt.Sprintf("The answer was HTTP %d.", status)
		}
	}
	w.End()
}

// End notes what was reached. More steps may follow.
func (w *Walk) End() {
	if w == nil {
		return
	}
	for _, step := range w.steps {
		if step.outcome == Passed && w.journal.Knows(w.attempt, step.kind, step.at) {
			continue
		}
		from := w.origin()
		w.journal.Note(Step{
			At: step.at, Kind: step.kind, Outcome: step.outcome, Rule: step.rule, Reason: step.reason,
			Attempt: w.attempt, Client: shorten(w.client),
			Request: from.Request, Address: from.Address, Agent: shorten(from.Agent),
		})
	}
	w.steps = nil
}

// explain keeps the text of a refusal only, because any other error may say anything.
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

const longest = 300 // bytes

// shorten bounds what others have a say in, and leaves printable ASCII only, because it is shown on terminals.
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
	return printable[:min(len(printable), longest)]
}
