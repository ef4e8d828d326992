package trace

import (
	"slices"
	"time"
)

// Assemble groups steps into connections, each with its state at the time now. The steps must be in
// order; it ignores those that are older than Memory. The connection with the newest step is first.
func Assemble(steps []Step, now time.Time) []Connection {
	a := assembly{
		attempts: map[string]*attempt{},
		waiting:  map[asker][]*attempt{},
		runs:     map[string][]*run{},
		others:   map[sender]*Connection{},
		doctors:  map[string]*attempt{},
	}
	reached := false // any metadata host
	for _, step := range steps {
		if now.Sub(step.At) < Memory {
			a.add(step)
			reached = reached || step.reachedMetadataHost()
		}
	}
	a.joinDiscoveries()
	a.joinProbes()
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

// adviseProxy adds advice for the case that no metadata host has answered, whose cause is probably
// the network of this service.
func adviseProxy(connections []Connection) {
	for i := range connections {
		if c := &connections[i]; c.State == Stopped && c.furthest().Rule == "C41" {
			c.Hint += needsProxy
		}
	}
}

// sender is what a request without a secret tells about its client.
type sender struct{ address, agent string }

func (s Step) sender() sender { return sender{s.Address, s.Agent} }

// attempt is a connection that has come to the authorization request.
type attempt struct {
	*Connection
	exchange *Step // nil before it
}

type assembly struct {
	order    []*Connection
	asked    []*attempt             // in the order of their first steps
	attempts map[string]*attempt    // by id, or by request for those without one
	waiting  map[asker][]*attempt   // attempts with an issued code
	runs     map[string][]*run      // discoveries by network, the newest last
	others   map[sender]*Connection // other steps without a client
	doctors  map[string]*attempt    // runs of doctor by user agent, which has the id of the run
}

func (a *assembly) add(step Step) {
	switch {
	case step.IsDoctor() && a.attempts[step.Attempt] == nil:
		a.addDoctor(step)
	case step.Attempt != "":
		a.addTo(a.attempt(step.Attempt), step)
	case step.Kind == Authorize, step.Kind == ClientMetadata, step.Kind == Page:
		a.addTo(a.attempt(step.Request), step)
	case step.Kind == Exchange && a.unfinished(step) != nil:
		a.addTo(a.unfinished(step), step)
	case discovery[step.Kind]:
		a.discover(step)
	default:
		from := step.sender()
		a.others[from] = a.extend(a.others[from], step)
	}
}

// addDoctor adds a step to the run of doctor that took it, with the attempt that it begins.
func (a *assembly) addDoctor(step Step) {
	run, known := a.doctors[step.Agent]
	if !known {
		run = &attempt{Connection: &Connection{ID: step.Request}}
		a.doctors[step.Agent] = run
		a.order = append(a.order, run.Connection)
	}
	if step.Attempt != "" {
		a.attempts[step.Attempt] = run
	}
	run.Steps = append(run.Steps, step)
}

func (a *assembly) addTo(to *attempt, step Step) {
	switch step.Kind {
	case Authorize:
		a.markAsked(step)
	case CodeIssued:
		if step.Client != "" {
			by := asker{step.Client, step.Address}
			a.waiting[by] = append(a.waiting[by], to)
		}
	case Exchange:
		a.endRuns(step)
		if to.exchange == nil {
			to.exchange = &step
		}
	}
	to.Steps = append(to.Steps, step)
}

// asker is a client in a network. Many people have the same client.
type asker struct{ client, address string }

// unfinished returns the newest attempt of the client in the network that waits for the exchange of
// its code. The exchange of an unknown code is added to it.
func (a *assembly) unfinished(exchange Step) *attempt {
	by := asker{exchange.Client, exchange.Address}
	for all := a.waiting[by]; len(all) > 0; all = all[:len(all)-1] {
		if newest := all[len(all)-1]; newest.last().Kind == CodeIssued {
			a.waiting[by] = all
			return newest
		}
	}
	delete(a.waiting, by)
	return nil
}

func (a *assembly) attempt(id string) *attempt {
	if known, found := a.attempts[id]; found {
		return known
	}
	made := &attempt{Connection: &Connection{ID: id}}
	a.attempts[id] = made
	a.asked = append(a.asked, made)
	a.order = append(a.order, made.Connection)
	return made
}

// extend adds a step to the earlier steps of the same sender, or to a new connection if those are
// too old. A client that does something else does it soon.
func (a *assembly) extend(earlier *Connection, step Step) *Connection {
	limit := clientLimit
	if earlier != nil && earlier.last().Kind == step.Kind {
		limit = maxDiscoveryAge
	}
	if earlier == nil || step.At.Sub(earlier.last().At) > limit {
		earlier = &Connection{ID: step.Request}
		a.order = append(a.order, earlier)
	}
	earlier.Steps = append(earlier.Steps, step)
	return earlier
}
