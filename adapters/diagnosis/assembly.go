package diagnosis

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/trace"
)

// Assemble groups steps into connections, each with its state at the time now. The steps must be in
// order; it ignores those that are older than trace.Memory. The connection with the newest step is
// first.
func Assemble(steps []trace.Step, now time.Time) []Connection {
	a := assembly{
		attempts: map[string]*attempt{},
		runs:     map[string]*attempt{},
		waiting:  map[asker][]*attempt{},
		newest:   map[sender]*attempt{},
	}
	reached := false // any metadata host
	for _, step := range steps {
		if now.Sub(step.At) < trace.Memory {
			a.add(step)
			reached = reached || hasReachedHost(step)
		}
	}
	found := make([]Connection, 0, len(a.order))
	for _, connection := range a.order {
		if len(connection.Steps) > 0 {
			found = append(found, connection.withVerdict(now))
		}
	}
	if !reached {
		adviseProxy(found)
	}
	slices.SortStableFunc(found, func(a, b Connection) int { return b.last().At.Compare(a.last().At) })
	return found
}

// discovery are the steps before the client sends its client_id.
var discovery = map[trace.Kind]bool{
	trace.Challenge:        true,
	trace.ResourceMetadata: true,
	trace.ServerMetadata:   true,
	trace.Registration:     true,
}

// attempt is a connection in the making.
type attempt struct {
	Connection
	began trace.Step // the first step, without its discovery
}

// sender is what a request without a secret tells about its client.
type sender struct {
	address, agent string
	discovers      bool
}

// asker is a client in a network. Many people have the same client.
type asker struct{ client, address string }

type assembly struct {
	order    []*attempt
	attempts map[string]*attempt  // by id, or by request for those without one
	runs     map[string]*attempt  // of doctor, by user agent, which has the id of the run
	waiting  map[asker][]*attempt // with an issued code
	newest   map[sender]*attempt  // steps without an id that are of no attempt yet
}

func (a *assembly) add(step trace.Step) {
	switch {
	case IsDoctor(step) && a.attempts[step.Attempt] == nil:
		a.addDoctor(step)
	case step.Attempt != "":
		a.addTo(a.attempt(step.Attempt), step)
	case step.Kind == trace.Authorize, step.Kind == trace.ClientMetadata, step.Kind == trace.Page:
		a.addTo(a.attempt(step.Request), step)
	case step.Kind == trace.Exchange && a.unfinished(step) != nil:
		a.addTo(a.unfinished(step), step)
	default:
		a.extend(step)
	}
}

// begin returns an attempt without steps.
func (a *assembly) begin(id string) *attempt {
	begun := &attempt{Connection: Connection{ID: id}}
	a.order = append(a.order, begun)
	return begun
}

func (a *assembly) attempt(id string) *attempt {
	if a.attempts[id] == nil {
		a.attempts[id] = a.begin(id)
	}
	return a.attempts[id]
}

// addDoctor adds a step to the run of doctor that took it, with the attempt that it begins.
func (a *assembly) addDoctor(step trace.Step) {
	if a.runs[step.Agent] == nil {
		a.runs[step.Agent] = a.begin(step.Request)
	}
	run := a.runs[step.Agent]
	if step.Attempt != "" {
		a.attempts[step.Attempt] = run
	}
	run.Steps = append(run.Steps, step)
}

func (a *assembly) addTo(to *attempt, step trace.Step) {
	if len(to.Steps) == 0 {
		to.began = step
	}
	switch step.Kind {
	case trace.CodeIssued:
		if step.Client != "" {
			by := asker{step.Client, step.Address}
			a.waiting[by] = append(a.waiting[by], to)
		}
	case trace.Exchange, trace.Stream, trace.Call:
		a.join(to, sender{step.Address, step.Agent, true})
	}
	to.Steps = append(to.Steps, step)
}

// join adds to an attempt the discovery of its client, whose network and user agent its exchange or
// call shows. That has begun before the authorization request, which is of the person's browser.
func (a *assembly) join(to *attempt, by sender) {
	found := a.newest[by]
	if found == nil || found.mustRegister() || !slices.Contains(beginning, to.began.Kind) ||
		found.Steps[0].At.After(to.began.At) || to.began.At.Sub(found.last().At) > clientLimit {
		return
	}
	to.Steps = append(found.Steps, to.Steps...)
	slices.SortStableFunc(to.Steps, func(a, b trace.Step) int { return cmp.Compare(a.Number, b.Number) })
	found.Steps = nil
	delete(a.newest, by)
}

// beginning are the first steps of a whole attempt. Those of an old connection are deleted.
var beginning = []trace.Kind{trace.Authorize, trace.ClientMetadata, trace.Page}

// unfinished returns the newest attempt of the client in the network that waits for the exchange of
// its code. The exchange of an unknown code is added to it.
func (a *assembly) unfinished(exchange trace.Step) *attempt {
	by := asker{exchange.Client, exchange.Address}
	for all := a.waiting[by]; len(all) > 0; all = all[:len(all)-1] {
		if newest := all[len(all)-1]; newest.last().Kind == trace.CodeIssued {
			a.waiting[by] = all
			return newest
		}
	}
	delete(a.waiting, by)
	return nil
}

// extend adds a step to the earlier steps of the same sender, or to a new connection if those are
// too old. A client that does something else does it soon.
func (a *assembly) extend(step trace.Step) {
	from := sender{step.Address, step.Agent, discovery[step.Kind]}
	earlier, limit := a.newest[from], clientLimit
	if earlier != nil && earlier.last().Kind == step.Kind {
		limit = personLimit
	}
	if earlier == nil || step.At.Sub(earlier.last().At) > limit {
		earlier = a.begin(step.Request)
		a.newest[from] = earlier
	}
	earlier.Steps = append(earlier.Steps, step)
}

// doctorAgent is the name in the user agent of pasteport doctor.
const doctorAgent = "pasteport-doctor"

// IsDoctor reports whether a step is of pasteport doctor. Another sender may use its user agent,
// too.
func IsDoctor(step trace.Step) bool {
	name, _, _ := strings.Cut(step.Agent, "/")
	return name == doctorAgent
}
