package trace

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// discovery are the steps before the client sends its client_id.
var discovery = map[Kind]bool{
	Challenge:        true,
	ResourceMetadata: true,
	ServerMetadata:   true,
	Registration:     true,
}

const (
	// maxDiscoveryAge is the maximum time between discovery steps and the authorization request to
	// which they are joined.
	maxDiscoveryAge = 10 * time.Minute
	// repeatPause is the pause after which a client that repeats its first step has been started
	// again. The official Go SDK repeats the whole discovery at once.
	repeatPause = 300 * time.Millisecond
	// restartPause is the pause after which a client that has completed its discovery has been
	// started again.
	restartPause = 5 * time.Second
	// relatedPause is the longest pause between steps of two user agents of one client. mcp-remote,
	// for example, sends those of undici and Node.
	relatedPause = time.Second
	// maxRuns is the number of runs of a network that are compared with a step, so that a flood
	// stays cheap.
	maxRuns = 20
)

// run is the discovery of one start of a client.
type run struct {
	*Connection
	began time.Time
	first map[string]Kind // by user agent: its first step
	asked bool            // an authorization request of the network followed
	over  bool            // the client exchanged its code
	taken bool            // joined to an attempt
}

// discover adds a step to the run that it continues, or begins another.
func (a *assembly) discover(step Step) {
	into := runOf(step, a.runs[step.Address])
	switch {
	case into == nil:
		into = a.begin(step)
	case step.Kind != Challenge && !into.hasOther(Challenge):
		into = a.split(into)
	}
	a.addToRun(into, step)
}

func (a *assembly) begin(step Step) *run {
	r := &run{Connection: &Connection{ID: step.Request}, began: step.At, first: map[string]Kind{}}
	a.order = append(a.order, r.Connection)
	a.runs[step.Address] = append(a.runs[step.Address], r)
	return r
}

func (a *assembly) addToRun(r *run, step Step) {
	if _, known := r.first[step.Agent]; !known {
		r.first[step.Agent] = step.Kind
	}
	r.Steps = append(r.Steps, step)
}

// split moves the last challenges of a client that comes further to a run of their own, because
// earlier ones were of an earlier start.
func (a *assembly) split(r *run) *run {
	last := len(r.Steps) - 1
	for last > 0 && r.Steps[last].At.Sub(r.Steps[last-1].At) <= relatedPause {
		last--
	}
	if last == 0 {
		return r
	}
	moved := a.begin(r.Steps[last])
	for _, step := range r.Steps[last:] {
		a.addToRun(moved, step)
	}
	r.Steps = r.Steps[:last:last]
	return moved
}

// runOf returns the newest run of the network that the step continues, nil for none.
func runOf(step Step, runs []*run) *run {
	for _, r := range slices.Backward(recent(runs)) {
		_, known := r.first[step.Agent]
		since := step.At.Sub(r.last().At)
		switch {
		case known && (r.over || since > maxDiscoveryAge || r.isStartedOver(step)):
			return nil
		case known, !r.over && since <= relatedPause && r.isContinuedBy(step):
			return r
		}
	}
	return nil
}

// recent returns the newest runs, the oldest first.
func recent(runs []*run) []*run { return runs[max(0, len(runs)-maxRuns):] }

// isStartedOver reports whether the step is of another start, or of another person with the same
// client: it follows an authorization request, or comes a while after the client had completed its
// discovery, or repeats its first step after a pause when it had gone further.
func (r *run) isStartedOver(step Step) bool {
	pause := step.At.Sub(r.last().At)
	switch {
	case r.asked, pause > restartPause && r.isComplete():
		return true
	case step.Kind != r.first[step.Agent]:
		return false
	}
	return r.hasOther(step.Kind) && pause > repeatPause
}

func (r *run) hasOther(kind Kind) bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Kind != kind })
}

// isContinuedBy reports whether a step with another user agent can be of the same client. Claude
// Code, for example, names itself at the MCP endpoint, and sends no user agent with its discovery.
func (r *run) isContinuedBy(step Step) bool {
	if step.Kind == Challenge && r.isComplete() {
		return false
	}
	if isLibrary(step.Agent) && step.Kind != Challenge {
		return r.isRelated(step.Agent, mayBeRelated)
	}
	return r.isRelated(step.Agent, areRelated)
}

// isComplete reports whether the client came from the challenge to the metadata of the server.
func (r *run) isComplete() bool {
	challenge := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Kind == Challenge })
	return challenge >= 0 && slices.ContainsFunc(r.Steps[challenge:], func(s Step) bool {
		return s.Kind == ServerMetadata
	})
}

func (r *run) isRelated(agent string, related func(a, b string) bool) bool {
	for other := range r.first {
		if !related(other, agent) {
			return false
		}
	}
	return true
}

// markAsked makes the next discovery step of the network begin another run.
func (a *assembly) markAsked(authorize Step) {
	for _, r := range recent(a.runs[authorize.Address]) {
		r.asked = true
	}
}

// endRuns makes the next discovery step of the client begin another run.
func (a *assembly) endRuns(exchange Step) {
	for _, r := range recent(a.runs[exchange.Address]) {
		_, sent := r.first[exchange.Agent]
		r.over = r.over || sent
	}
}

// joinDiscoveries adds to each attempt the discovery of its client. Those whose exchange shows the
// user agent of the client come first.
func (a *assembly) joinDiscoveries() {
	for _, attempt := range a.asked {
		if attempt.exchange != nil && attempt.isWhole() {
			a.joinBySender(attempt)
		}
	}
	for _, attempt := range a.asked {
		if attempt.isWhole() {
			a.joinByNetwork(attempt)
		}
	}
}

// isWhole reports whether the first step is the authorization request. The first steps of an old
// connection are deleted, and discovery is joined once.
func (c *Connection) isWhole() bool {
	kind := c.Steps[0].Kind
	return kind == Authorize || kind == ClientMetadata || kind == Page
}

// joinBySender joins the newest run of the client before the authorization request, which is from
// another network if the client is a service.
func (a *assembly) joinBySender(to *attempt) {
	began := to.Steps[0]
	for _, r := range slices.Backward(before(a.runs[to.exchange.Address], began)) {
		if _, sent := r.first[to.exchange.Agent]; sent && !r.taken && r.mayBelongTo(began) {
			to.take(r)
			return
		}
	}
}

// joinProbes adds the runs that led to no authorization request to the latest connection of the
// same network and user agent before them, or the next one if it follows soon. Codex, for example,
// asks for the challenge and the metadata each time it is started.
func (a *assembly) joinProbes() {
	attempts := map[sender][]begun{}
	for _, known := range a.asked {
		for _, from := range known.senders() {
			attempts[from] = append(attempts[from], begun{known, known.Steps[0]})
		}
	}
	for _, runs := range a.runs {
		for _, r := range runs {
			if to := r.probeOf(attempts); to != nil {
				to.take(r)
			}
		}
	}
}

// begun is an attempt with its first step before any probe was added.
type begun struct {
	*attempt
	first Step
}

// senders returns those of the client, not that of the person's browser.
func (c *Connection) senders() (all []sender) {
	for _, step := range c.Steps {
		if slices.Contains(byClient, step.Kind) && !slices.Contains(all, step.sender()) {
			all = append(all, step.sender())
		}
	}
	return all
}

// probeOf returns the connection to which the run belongs, nil for none. A client that was told
// that it cannot register itself has its own row.
func (r *run) probeOf(attempts map[sender][]begun) (to *attempt) {
	if r.taken || len(r.Steps) == 0 || r.mustRegister() {
		return nil
	}
	for _, step := range r.Steps {
		for _, known := range attempts[step.sender()] {
			if !known.first.At.After(r.began) || to == nil && r.mayBelongTo(known.first) {
				to = known.attempt
			}
		}
	}
	return to
}

// joinByNetwork joins the newest run from the network of the authorization request. Its user agent
// is that of a browser, and says nothing about the client.
func (a *assembly) joinByNetwork(to *attempt) {
	began := to.Steps[0]
	for _, r := range slices.Backward(before(a.runs[began.Address], began)) {
		if !r.taken && r.mayBelongTo(began) && (to.exchange == nil || r.isRelated(to.exchange.Agent, mayBeRelated)) {
			to.take(r)
			return
		}
	}
}

// before returns the newest runs that began before the step, the oldest first.
func before(runs []*run, step Step) []*run {
	later := sort.Search(len(runs), func(i int) bool { return runs[i].began.After(step.At) })
	return recent(runs[:later])
}

// mayBelongTo reports whether the run can have led to the authorization request.
func (r *run) mayBelongTo(authorize Step) bool {
	age := authorize.At.Sub(r.last().At)
	return age <= maxDiscoveryAge && !r.mustRegister()
}

func (to *attempt) take(r *run) {
	r.taken = true
	to.Steps = append(slices.Clone(r.Steps), to.Steps...)
	slices.SortStableFunc(to.Steps, func(a, b Step) int { return cmp.Compare(a.Number, b.Number) })
	r.Steps = nil
}
