// Package diagnosis finds out how far the attempts of clients to connect have come, and why they
// stopped. Its Journal stores the steps of requests in the background; Assemble groups stored steps
// into connections, each with a verdict and a remedy.
package diagnosis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/connection"
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
	ID      string            `json:"id"` // of the attempt, or of the first request for one without an attempt
	Client  string            `json:"client_id,omitempty"`
	Agent   string            `json:"user_agent,omitempty"`
	Doctor  bool              `json:"doctor,omitempty"` // every step is of pasteport doctor
	Address string            `json:"network,omitempty"`
	State   State             `json:"state"`
	Missing connection.Kind   `json:"missing,omitempty"` // the step that has to follow
	Verdict string            `json:"verdict"`           // the diagnosis
	Hint    string            `json:"hint,omitempty"`    // the remedy
	Steps   []connection.Step `json:"steps"`

	identified bool // the sender of the last step has used a code or a token, so it needs no registration
}

func (c *Connection) last() connection.Step { return c.Steps[len(c.Steps)-1] }

// WithoutDoctor returns the connections of clients, and the number of those of pasteport doctor.
// Every sender can choose its user agent, so a list that hides connections has to say how many.
func WithoutDoctor(all []Connection) (clients []Connection, doctors int) {
	clients = make([]Connection, 0, len(all))
	for _, c := range all {
		if !c.Doctor {
			clients = append(clients, c)
		}
	}
	return clients, len(all) - len(clients)
}

// Attempts returns the number with its noun.
func Attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return strconv.Itoa(n) + " attempts"
}

// Latest returns the index of the connection to show first: the newest in which a person came to
// the page, else the newest. Probes of a client that is started again would hide the attempt that
// matters.
func Latest(connections []Connection) int {
	return max(0, slices.IndexFunc(connections, Connection.reachedPage))
}

func (c Connection) reachedPage() bool {
	return slices.ContainsFunc(c.Steps, func(s connection.Step) bool {
		return s.Attempt != "" || s.Kind == connection.Authorize
	})
}

// Find returns the connection whose id, or the id of one of its requests, begins with id. It
// returns false if there is none or more than one.
func Find(connections []Connection, id string) (found Connection, ok bool) {
	matches := 0
	for _, c := range connections {
		hasRequest := slices.ContainsFunc(c.Steps, func(s connection.Step) bool {
			return strings.HasPrefix(s.Request, id)
		})
		if id != "" && (hasRequest || oauth.MatchesID(id, c.ID)) {
			found, matches = c, matches+1
		}
	}
	return found, matches == 1
}

// Who returns the host of the client, the name of one that registered itself, or its user agent or
// address. A run of doctor has the client_ids of several clients.
func (c *Connection) Who() string {
	if c.Doctor {
		return c.Agent
	}
	if registered, ok := strings.CutPrefix(c.Client, oauth.SelfRegistered+"/"); ok {
		_, name, _ := strings.Cut(registered, " ")
		return strings.TrimSpace(oauth.SelfRegistered + " " + name)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(c.Client, "http://"), "https://"), "/")
	return cmp.Or(host, c.Agent, c.Address, "unknown")
}

// Began returns when the first step was taken.
func (c *Connection) Began() time.Time { return c.Steps[0].At }
