package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Recorder records the steps of one request.
type Recorder struct {
	Journal Journal // nil for none; steps before it is set are not recorded

	common       Entry // what all steps share; its Step has the Request alone
	steps        []Step
	rule         string
	asksRevision bool // the last step asks whether the server speaks the newest revision
}

// OlderRevision is the reason of a refused server/discover, after which clients go on with
// initialize.
const OlderRevision = "The server speaks an older revision of MCP than the client asked for."

type recorderKey struct{}

// Begin returns a context with a Recorder for the request with that id, network and user agent.
func Begin(ctx context.Context, request, address, agent string) context.Context {
	common := Entry{Step: Step{Request: request}, Address: address, Agent: agent}
	return context.WithValue(ctx, recorderKey{}, &Recorder{common: common})
}

// From returns the Recorder of ctx, or one without a Journal.
func From(ctx context.Context) *Recorder {
	if recorder, has := ctx.Value(recorderKey{}).(*Recorder); has {
		return recorder
	}
	return new(Recorder)
}

// Request returns the id of the request, "" when it has none.
func (r *Recorder) Request() string { return r.common.Request }

// Identify sets the attempt and the client of the steps. An empty argument changes nothing.
func (r *Recorder) Identify(attempt, client string) {
	r.common.Attempt, r.common.Client = cmp.Or(attempt, r.common.Attempt), cmp.Or(client, r.common.Client)
}

// Record adds a step, which counts as passed unless Refuse or Answer follows.
func (r *Recorder) Record(kind Kind) {
	if r.Journal != nil {
		r.steps = append(r.steps, Step{Kind: kind, Outcome: Passed, Request: r.common.Request})
		r.asksRevision = false
	}
}

// last returns the last step or, without one, a step that is never noted.
func (r *Recorder) last() *Step {
	if len(r.steps) == 0 {
		return new(Step)
	}
	return &r.steps[len(r.steps)-1]
}

// AsksRevision marks the last step as one that asks whether the MCP server speaks the newest
// revision.
func (r *Recorder) AsksRevision() { r.asksRevision = true }

// Refuse sets the outcome and the reason of the last step.
func (r *Recorder) Refuse(err error) {
	last := r.last()
	last.Outcome, last.Rule, last.Reason = explain(err)
	r.rule = last.Rule
}

// Rule returns the rule of the last refusal, "" for none. It is known without a journal, too.
func (r *Recorder) Rule() string { return r.rule }

// Explain sets the rule and the reason of the last step, which still counts as passed.
func (r *Recorder) Explain(err error) {
	last := r.last()
	_, last.Rule, last.Reason = explain(err)
}

// RefuseAt is Refuse for a request that may have recorded no step. Then it records the given one.
func (r *Recorder) RefuseAt(kind Kind, err error) {
	if len(r.steps) == 0 && kind != "" {
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

// End notes the recorded steps in the journal. More steps may follow.
func (r *Recorder) End() {
	for _, step := range r.steps {
		entry := r.common
		entry.Step = step
		r.Journal.Note(entry)
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
		return Failed, refused.Rule, refused.Detail()
	}
	return Refused, refused.Rule, refused.Detail()
}
