package trace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// State is the progress of a connection.
type State string

// UnderWay waits for its next step. HalfWay has waited too long.
const (
	UnderWay  State = "under way"
	HalfWay   State = "half way"
	Stopped   State = "stopped"
	Connected State = "connected"
	Over      State = "ended"
)

// Connection is one attempt to connect, with all its steps.
type Connection struct {
	ID      string `json:"id"` // of the attempt, or of its first request when it has none
	Client  string `json:"client_id,omitempty"`
	Agent   string `json:"user_agent,omitempty"`
	Address string `json:"network,omitempty"`
	State   State  `json:"state"`
	Missing Kind   `json:"missing,omitempty"` // the next step
	Verdict string `json:"verdict"`           // the diagnosis, in a sentence
	Hint    string `json:"hint,omitempty"`    // the remedy
	Steps   []Step `json:"steps"`
}

// maxOpeningAge is the time after which the first steps of a client, which name no client, are not joined to an authorization request.
const maxOpeningAge = 10 * time.Minute

// Assemble groups steps, which are in order, into connections and sets the state of each at the time now. The newest connection is first. It
// ignores steps that are older than Memory.
func Assemble(steps []Step, now time.Time) []Connection {
	a := assembly{
		attempts: map[string]*Connection{}, waiting: map[string][]*Connection{},
		openings: map[string]map[string]*Connection{}, strays: map[stranger]*Connection{},
	}
	reached := false // any metadata host
	for _, step := range steps {
		if now.Sub(step.At) < Memory {
			a.add(step)
			reached = reached || step.reachedMetadataHost()
		}
	}
	found := make([]Connection, 0, len(a.order))
	for _, connection := range a.order {
		if len(connection.Steps) > 0 {
			found = append(found, connection.judged(now))
		}
	}
	if !reached {
		adviseProxy(found)
	}
	slices.SortStableFunc(found, func(a, b Connection) int { return b.last().At.Compare(a.last().At) })
	return found
}

// adviseProxy adds advice when no metadata host has answered, because the cause is then more likely here than at one client.
func adviseProxy(connections []Connection) {
	for i := range connections {
		if c := &connections[i]; c.State == Stopped && c.last().Rule == "C41" {
			c.Hint += needsProxy
		}
	}
}

// stranger is the sender of steps that name no client.
type stranger struct{ address, agent string }

type assembly struct {
	order    []*Connection
	attempts map[string]*Connection            // by id, or by request for those without one
	waiting  map[string][]*Connection          // by client: attempts with an issued code
	openings map[string]map[string]*Connection // by network and agent: first steps that may belong to an attempt
	strays   map[stranger]*Connection          // other steps of strangers
}

func (a *assembly) add(step Step) {
	switch {
	case step.Attempt != "":
		a.join(a.attempt(step.Attempt), step)
	case step.Kind == Authorize, step.Kind == ClientMetadata, step.Kind == Page:
		a.join(a.attempt(step.Request), step)
	case step.Kind == Exchange && a.unfinished(step.Client) != nil:
		a.join(a.unfinished(step.Client), step)
	case beginning[step.Kind]:
		a.open(step)
	default:
		who := stranger{step.Address, step.Agent}
		a.strays[who] = a.goOn(a.strays[who], step)
	}
}

// join adds a step to an attempt, and before it the first steps from the same network. They are found at the authorization request of a client on
// the person's computer, and at the exchange of a client that is a service.
func (a *assembly) join(attempt *Connection, step Step) {
	if opening := a.openingFor(attempt, step); opening != nil {
		delete(a.openings[opening.last().Address], opening.last().Agent)
		attempt.Steps = append(opening.Steps, attempt.Steps...)
		opening.Steps = nil
	}
	attempt.Steps = append(attempt.Steps, step)
	if step.Kind == CodeIssued && step.Client != "" {
		a.waiting[step.Client] = append(a.waiting[step.Client], attempt)
	}
}

// unfinished returns the client's newest attempt that waits for the exchange of its code. An unknown code is counted to it.
func (a *assembly) unfinished(client string) *Connection {
	for all := a.waiting[client]; len(all) > 0; all = all[:len(all)-1] {
		if newest := all[len(all)-1]; newest.last().Kind == CodeIssued {
			a.waiting[client] = all
			return newest
		}
	}
	delete(a.waiting, client)
	return nil
}

// openingFor returns the newest first steps of the same network that may belong to the attempt.
func (a *assembly) openingFor(attempt *Connection, step Step) (found *Connection) {
	if step.Kind == Exchange && !attempt.opened() {
		return fresh(a.openings[step.Address][step.Agent], step)
	}
	if len(attempt.Steps) > 0 {
		return nil
	}
	for agent, opening := range a.openings[step.Address] {
		switch {
		case fresh(opening, step) == nil:
			delete(a.openings[step.Address], agent)
		case found == nil || opening.last().Number > found.last().Number:
			found = opening
		}
	}
	return found
}

// fresh returns the connection if it is recent enough for the step, nil otherwise.
func fresh(c *Connection, step Step) *Connection {
	if c == nil || step.At.Sub(c.last().At) > maxOpeningAge {
		return nil
	}
	return c
}

func (a *assembly) attempt(id string) *Connection {
	if known, found := a.attempts[id]; found {
		return known
	}
	made := &Connection{ID: id}
	a.attempts[id] = made
	a.order = append(a.order, made)
	return made
}

// beginning are the steps before the client sends its client_id.
var beginning = map[Kind]bool{Challenge: true, ResourceMetadata: true, ServerMetadata: true, Registration: true}

func (a *assembly) open(step Step) {
	if a.openings[step.Address] == nil {
		a.openings[step.Address] = map[string]*Connection{}
	}
	a.openings[step.Address][step.Agent] = a.goOn(a.openings[step.Address][step.Agent], step)
}

// goOn adds a step to the earlier steps of the same stranger, or to a new connection when those are too old.
func (a *assembly) goOn(before *Connection, step Step) *Connection {
	c := fresh(before, step)
	if c == nil {
		c = &Connection{ID: step.Request}
		a.order = append(a.order, c)
	}
	c.Steps = append(c.Steps, step)
	return c
}

func (c *Connection) last() Step { return c.Steps[len(c.Steps)-1] }

// opened reports whether the attempt has its first steps already.
func (c *Connection) opened() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return beginning[s.Kind] })
}

// Find returns the only connection whose id, or one of whose request ids, begins with id. ok is false when there is none or more than one.
func Find(connections []Connection, id string) (found Connection, ok bool) {
	matches := 0
	for _, connection := range connections {
		asked := slices.ContainsFunc(connection.Steps, func(s Step) bool { return strings.HasPrefix(s.Request, id) })
		if id != "" && (asked || oauth.NamesID(id, connection.ID)) {
			found, matches = connection, matches+1
		}
	}
	return found, matches == 1
}

// Who returns the host of the client, or its user agent or address.
func (c *Connection) Who() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(c.Client, "https://"), "/")
	return cmp.Or(host, c.Agent, c.Address, "somebody")
}

// Began returns when the first step was taken.
func (c *Connection) Began() time.Time { return c.Steps[0].At }
