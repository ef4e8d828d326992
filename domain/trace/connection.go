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

// A connection UnderWay waits for its next step, and one that is HalfWay has waited too long.
const (
	UnderWay  State = "under way"
	HalfWay   State = "half way"
	Stopped   State = "stopped"
	Connected State = "connected"
	Over      State = "ended"
)

// Connection is one attempt to connect, with all its steps.
type Connection struct {
	ID      string `json:"id"` // of the attempt, or of the first request for one without an attempt
	Client  string `json:"client_id,omitempty"`
	Agent   string `json:"user_agent,omitempty"`
	Address string `json:"network,omitempty"`
	State   State  `json:"state"`
	Missing Kind   `json:"missing,omitempty"` // the step that has to follow
	Verdict string `json:"verdict"`           // the diagnosis
	Hint    string `json:"hint,omitempty"`    // the remedy
	Steps   []Step `json:"steps"`
}

// maxDiscoveryAge is the maximum time between discovery steps and the authorization request to which they are joined.
const maxDiscoveryAge = 10 * time.Minute

// Assemble groups steps into connections, each with its state at the time now. The steps must be in order; it ignores those that are older than
// Memory. The connection with the newest step is first.
func Assemble(steps []Step, now time.Time) []Connection {
	a := assembly{
		attempts: map[string]*Connection{}, waiting: map[string][]*Connection{},
		discoveries: map[string]map[string]*Connection{}, others: map[anonymous]*Connection{},
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
			found = append(found, connection.withVerdict(now))
		}
	}
	if !reached {
		adviseProxy(found)
	}
	slices.SortStableFunc(found, func(a, b Connection) int { return b.last().At.Compare(a.last().At) })
	return found
}

// adviseProxy adds advice for the case that no metadata host has answered, whose cause is probably the network of this service.
func adviseProxy(connections []Connection) {
	for i := range connections {
		if c := &connections[i]; c.State == Stopped && c.last().Rule == "C41" {
			c.Hint += needsProxy
		}
	}
}

// anonymous is the sender of steps without a client_id.
type anonymous struct{ address, agent string }

type assembly struct {
	order       []*Connection
	attempts    map[string]*Connection            // by id, or by request for those without one
	waiting     map[string][]*Connection          // by client: attempts with an issued code
	discoveries map[string]map[string]*Connection // by network and agent: discovery steps that may belong to an attempt
	others      map[anonymous]*Connection         // other steps without a client
}

func (a *assembly) add(step Step) {
	switch {
	case step.Attempt != "":
		a.join(a.attempt(step.Attempt), step)
	case step.Kind == Authorize, step.Kind == ClientMetadata, step.Kind == Page:
		a.join(a.attempt(step.Request), step)
	case step.Kind == Exchange && a.unfinished(step.Client) != nil:
		a.join(a.unfinished(step.Client), step)
	case discovery[step.Kind]:
		if a.discoveries[step.Address] == nil {
			a.discoveries[step.Address] = map[string]*Connection{}
		}
		a.discoveries[step.Address][step.Agent] = a.extend(a.discoveries[step.Address][step.Agent], step)
	default:
		sender := anonymous{step.Address, step.Agent}
		a.others[sender] = a.extend(a.others[sender], step)
	}
}

// join adds a step to an attempt, and the discovery steps from the same network before it. A client on the person's computer has the network of the
// authorization request, and a client that is a service has that of the exchange.
func (a *assembly) join(attempt *Connection, step Step) {
	if found := a.discoveryFor(attempt, step); found != nil {
		delete(a.discoveries[found.last().Address], found.last().Agent)
		attempt.Steps = append(found.Steps, attempt.Steps...)
		found.Steps = nil
	}
	attempt.Steps = append(attempt.Steps, step)
	if step.Kind == CodeIssued && step.Client != "" {
		a.waiting[step.Client] = append(a.waiting[step.Client], attempt)
	}
}

// unfinished returns the client's newest attempt that waits for the exchange of its code. The exchange of an unknown code is added to it.
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

// discoveryFor returns the newest discovery steps of the same network that may belong to the attempt.
func (a *assembly) discoveryFor(attempt *Connection, step Step) (found *Connection) {
	if step.Kind == Exchange && !attempt.hasDiscovery() {
		return fresh(a.discoveries[step.Address][step.Agent], step)
	}
	if len(attempt.Steps) > 0 {
		return nil
	}
	for agent, c := range a.discoveries[step.Address] {
		switch {
		case fresh(c, step) == nil:
			delete(a.discoveries[step.Address], agent)
		case found == nil || c.last().Number > found.last().Number:
			found = c
		}
	}
	return found
}

// fresh returns the connection if it is recent enough for the step, nil otherwise.
func fresh(c *Connection, step Step) *Connection {
	if c == nil || step.At.Sub(c.last().At) > maxDiscoveryAge {
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

// discovery are the steps before the client sends its client_id.
var discovery = map[Kind]bool{Challenge: true, ResourceMetadata: true, ServerMetadata: true, Registration: true}

// extend adds a step to the earlier steps of the same sender, or to a new connection if those are too old.
func (a *assembly) extend(earlier *Connection, step Step) *Connection {
	c := fresh(earlier, step)
	if c == nil {
		c = &Connection{ID: step.Request}
		a.order = append(a.order, c)
	}
	c.Steps = append(c.Steps, step)
	return c
}

func (c *Connection) last() Step { return c.Steps[len(c.Steps)-1] }

func (c *Connection) hasDiscovery() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return discovery[s.Kind] })
}

// Find returns the connection whose id, or the id of one of its requests, begins with id. It returns false if there is none or more than one.
func Find(connections []Connection, id string) (found Connection, ok bool) {
	matches := 0
	for _, connection := range connections {
		hasRequest := slices.ContainsFunc(connection.Steps, func(s Step) bool { return strings.HasPrefix(s.Request, id) })
		if id != "" && (hasRequest || oauth.MatchesID(id, connection.ID)) {
			found, matches = connection, matches+1
		}
	}
	return found, matches == 1
}

// Who returns the host of the client, or its user agent or address.
func (c *Connection) Who() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(c.Client, "http://"), "https://"), "/")
	return cmp.Or(host, c.Agent, c.Address, "unknown")
}

// Began returns when the first step was taken.
func (c *Connection) Began() time.Time { return c.Steps[0].At }
