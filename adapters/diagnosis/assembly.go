package diagnosis

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/connection"
)

// Assemble groups steps into connections, each with its state at the time now. The steps must be in
// order; it ignores those that are older than connection.Memory. The connection with the newest
// step is first.
func Assemble(steps []connection.Step, now time.Time) []Connection {
	a := assembly{
		attempts:  map[string]*attempt{},
		runs:      map[string]*attempt{},
		newest:    map[sender]*attempt{},
		connected: map[sender][]*attempt{},
	}
	for _, step := range steps {
		if now.Sub(step.At) < connection.Memory {
			a.add(step)
		}
	}
	a.adopt(now)
	found := make([]Connection, 0, len(a.order))
	for _, made := range a.order {
		if len(made.Steps) > 0 {
			last := made.last()
			made.identified = len(a.connected[sender{last.Address, last.Agent, false}]) > 0
			found = append(found, made.withVerdict(now))
		}
	}
	slices.SortStableFunc(found, func(a, b Connection) int { return b.last().At.Compare(a.last().At) })
	return found
}

// discovery are the steps before the client sends its client_id.
var discovery = map[connection.Kind]bool{
	connection.Challenge:        true,
	connection.ResourceMetadata: true,
	connection.ServerMetadata:   true,
	connection.Registration:     true,
}

// attempt is a connection in the making.
type attempt struct {
	Connection
	began connection.Step // the first step with the id of the attempt, after any discovery
}

// sender identifies the client of a request that has no id of an attempt.
type sender struct {
	address, agent string
	discovers      bool
}

type assembly struct {
	order     []*attempt            // as they began
	attempts  map[string]*attempt   // by id, or by request for those without one
	runs      map[string]*attempt   // of doctor, by user agent, which has the id of the run
	newest    map[sender]*attempt   // the newest steps of a sender that belong to no attempt yet
	connected map[sender][]*attempt // in which a sender has used a code or a token
}

func (a *assembly) add(step connection.Step) {
	switch {
	case IsDoctor(step) && a.attempts[step.Attempt] == nil:
		a.addDoctor(step)
	case step.Attempt != "":
		a.addTo(a.attempt(step.Attempt), step)
	case step.Kind == connection.Authorize, step.Kind == connection.ClientMetadata, step.Kind == connection.Page:
		a.addTo(a.attempt(step.Request), step)
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

// addDoctor adds a step to its run of doctor. If the step begins an attempt, the later steps of
// that attempt belong to the run, too.
func (a *assembly) addDoctor(step connection.Step) {
	if a.runs[step.Agent] == nil {
		a.runs[step.Agent] = a.begin(step.Request)
	}
	run := a.runs[step.Agent]
	if step.Attempt != "" {
		a.attempts[step.Attempt] = run
	}
	run.Steps = append(run.Steps, step)
}

// proving are the steps that need a code or a token of the attempt.
var proving = []connection.Kind{connection.Exchange, connection.Call, connection.Refresh}

func (a *assembly) addTo(to *attempt, step connection.Step) {
	if len(to.Steps) == 0 {
		to.began = step
	}
	by := sender{step.Address, step.Agent, false}
	if step.Outcome == connection.Passed && slices.Contains(proving, step.Kind) &&
		!slices.Contains(a.connected[by], to) {
		a.connected[by] = append(a.connected[by], to)
	}
	if step.Kind == connection.Exchange || step.Kind == connection.Stream || step.Kind == connection.Call {
		a.join(to, sender{step.Address, step.Agent, true})
	}
	to.Steps = append(to.Steps, step)
}

// join puts the discovery of the attempt's client before the attempt's steps. Discovery has no id
// of an attempt, so join finds it by the sender of an exchange, stream or call; the authorization
// request comes from the person's browser. The discovery must have begun before the attempt, and
// ended at most personLimit before it, because some clients only print the address for the browser.
func (a *assembly) join(to *attempt, by sender) {
	found := a.newest[by]
	if found == nil || found.wasRefusedRegistration() || !slices.Contains(beginning, to.began.Kind) {
		return
	}
	began, ended := found.Steps[0].At, found.last().At
	if began.After(to.began.At) || to.began.At.Sub(ended) > personLimit {
		return
	}
	to.Steps = append(found.Steps, to.Steps...)
	slices.SortStableFunc(to.Steps, byNumber)
	found.Steps = nil
	delete(a.newest, by)
}

// adopt adds discovery that led to no attempt to the connection that its sender had before: some
// clients read the metadata without their token whenever they start or refresh. Until clientLimit,
// it may still lead to a new login.
func (a *assembly) adopt(now time.Time) {
	for _, found := range a.order {
		if len(found.Steps) == 0 || !discovery[found.furthest().Kind] || found.wasRefusedRegistration() ||
			now.Sub(found.last().At) < clientLimit {
			continue
		}
		first := found.Steps[0]
		for _, to := range slices.Backward(a.connected[sender{first.Address, first.Agent, false}]) {
			if last := to.furthest(); to.Steps[0].At.Before(first.At) && to.reached(connection.Ended) == nil &&
				to.isConnected(last) && last.Outcome == connection.Passed {
				to.Steps, found.Steps = append(to.Steps, found.Steps...), nil
				slices.SortStableFunc(to.Steps, byNumber)
				break
			}
		}
	}
}

func byNumber(a, b connection.Step) int { return cmp.Compare(a.Number, b.Number) }

// beginning are the kinds of the first step of a complete attempt. The first steps of an old
// connection were deleted.
var beginning = []connection.Kind{connection.Authorize, connection.ClientMetadata, connection.Page}

// extend adds a step to the earlier steps of the same sender, or to a new connection if those are
// too old.
func (a *assembly) extend(step connection.Step) {
	from := sender{step.Address, step.Agent, discovery[step.Kind]}
	earlier := a.newest[from]
	if earlier == nil || step.At.Sub(earlier.last().At) > clientLimit {
		earlier = a.begin(step.Request)
		a.newest[from] = earlier
	}
	earlier.Steps = append(earlier.Steps, step)
}

// doctorAgent is the name in the user agent of pasteport doctor.
const doctorAgent = "pasteport-doctor"

// IsDoctor reports whether a step is of pasteport doctor. Another sender may use its user agent,
// too.
func IsDoctor(step connection.Step) bool {
	name, _, _ := strings.Cut(step.Agent, "/")
	return name == doctorAgent
}
