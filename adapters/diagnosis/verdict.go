package diagnosis

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/connection"
)

// A client takes its next step within clientLimit, and a person within personLimit, the lifetime of
// the page.
const (
	clientLimit = time.Minute
	personLimit = 10 * time.Minute
)

// expectation is the step that has to follow another one.
type expectation struct {
	next   connection.Kind
	within time.Duration
}

var expectations = map[connection.Kind]expectation{
	connection.Challenge:        {connection.ResourceMetadata, clientLimit},
	connection.ResourceMetadata: {connection.ServerMetadata, clientLimit},
	connection.ServerMetadata:   {connection.Authorize, clientLimit},
	connection.Authorize:        {connection.Page, clientLimit},
	connection.ClientMetadata:   {connection.Page, clientLimit},
	connection.Page:             {connection.TokenJudged, personLimit},
	connection.TokenJudged:      {connection.CodeIssued, clientLimit},
	connection.CodeIssued:       {connection.Exchange, clientLimit},
	connection.Exchange:         {connection.Call, clientLimit},
	connection.Refresh:          {connection.Call, connection.Renewal},
	connection.Stream:           {connection.Call, clientLimit},
}

// noRegistration is the rule under which a client cannot register itself. A step of the server
// metadata has it if the document names no registration endpoint.
const noRegistration = "F4"

// wasRefusedRegistration reports whether the client was told that it cannot register itself. If so,
// it cannot have come further.
func (c *Connection) wasRefusedRegistration() bool {
	return slices.ContainsFunc(c.Steps, func(s connection.Step) bool {
		return s.Kind == connection.Registration && s.Rule == noRegistration
	})
}

// withVerdict returns the connection with its state, verdict and hint at the time now.
func (c *Connection) withVerdict(now time.Time) Connection {
	c.describe()
	c.acceptOlderRevisions()
	last := c.furthest()
	expected, expects := expectations[last.Kind]
	lacksRegistration := !c.identified && last.Kind == connection.ServerMetadata && last.Rule == noRegistration
	switch {
	case c.Doctor:
		c.State, c.Verdict = Over, "A run of pasteport doctor, which prints its own report."
	case c.wasRefusedRegistration() && discovery[last.Kind]:
		c.State, c.Verdict, c.Hint = Stopped, "The client has to register itself, and self-registration is off.",
			advice[noRegistration]
	case c.reached(connection.Ended) != nil:
		reason, detail, _ := strings.Cut(c.reached(connection.Ended).Reason, ": ")
		c.State, c.Verdict, c.Hint = Over, strings.TrimSpace("The connection has ended: "+
			cmp.Or(advice[reason+".verdict"], reason)+" "+detail), advice[reason+".hint"]
	case last.Outcome != connection.Passed && !c.isConnected(last):
		c.State, c.Verdict, c.Hint = Stopped, "The attempt stopped at the step \""+last.Kind.Name()+"\": "+last.Reason,
			hintFor(last)
	case c.isConnected(last) && last.Outcome == connection.Failed:
		c.State, c.Verdict, c.Hint = Connected, "The client is connected, but the step \""+last.Kind.Name()+
			"\" failed: "+last.Reason, hintFor(last)
	case c.isConnected(last) || !expects:
		c.State, c.Verdict = Connected, "The client is connected and has used its token."
		if last.Outcome == connection.Refused {
			c.Hint = cmp.Or(c.hintForLapse(last), hintFor(last))
		}
	case now.Sub(c.since(last)) < expected.within:
		c.State, c.Missing, c.Verdict = UnderWay, expected.next, "Waiting for the step \""+expected.next.Name()+"\"."
		if lacksRegistration {
			c.Verdict += " A client that has to register itself stops here, because self-registration is off."
			c.Hint = advice[noRegistration]
		}
	default:
		key := string(last.Kind)
		if lacksRegistration {
			key = "unregistered"
		}
		c.State, c.Missing, c.Verdict, c.Hint = HalfWay, expected.next, advice[key+".verdict"], advice[key+".hint"]
	}
	return *c
}

const (
	// noRefreshToken is the rule under which a client that could refresh gets no refresh token.
	noRefreshToken = "A47"
	// unknownToken is the rule under which a call with an ended access token is refused.
	unknownToken = "G7"
)

// hintForLapse returns the advice for a client whose access token has ended, and that could have
// had a refresh token.
func (c *Connection) hintForLapse(last connection.Step) string {
	page := c.reached(connection.Page)
	if page == nil || page.Rule != noRefreshToken || last.Kind != connection.Call || last.Rule != unknownToken {
		return ""
	}
	return advice[noRefreshToken]
}

// furthest returns the step that decides the verdict: the last step that is not discovery. If there
// is only discovery, it is the last step if that failed and no step of its kind has passed.
// Otherwise it is the passed step that comes latest in the flow, because some clients try several
// paths or begin again with another transport.
func (c *Connection) furthest() connection.Step {
	for _, step := range slices.Backward(c.Steps) {
		if !discovery[step.Kind] {
			return step
		}
	}
	last := c.last()
	if last.Outcome != connection.Passed && c.reached(last.Kind) == nil {
		return last
	}
	for _, kind := range []connection.Kind{
		connection.ServerMetadata, connection.ResourceMetadata, connection.Challenge,
	} {
		if reached := c.reached(kind); reached != nil {
			furthest := *reached
			furthest.At = last.At
			return furthest
		}
	}
	return last
}

// acceptOlderRevisions makes a refused server/discover pass if the client went on in an older
// revision.
func (c *Connection) acceptOlderRevisions() {
	wentOn := false
	for i := len(c.Steps) - 1; i >= 0; i-- {
		step := &c.Steps[i]
		wentOn = wentOn || step.Kind == connection.Call && step.Outcome == connection.Passed
		if wentOn && step.Reason == connection.OlderRevision {
			step.Outcome = connection.Passed
		}
	}
}

// isConnected reports whether the client has made a call, unless its refresh was refused
// afterwards.
func (c *Connection) isConnected(last connection.Step) bool {
	return c.reached(connection.Call) != nil && (last.Outcome == connection.Passed || last.Kind != connection.Refresh)
}

// since returns when the wait for the next step began. A repeated refresh does not restart it.
func (c *Connection) since(last connection.Step) time.Time {
	if last.Kind == connection.Refresh {
		return c.reached(connection.Refresh).At
	}
	return last.At
}

// reached returns the first passed step of the kind, nil if there is none.
func (c *Connection) reached(kind connection.Kind) *connection.Step {
	i := slices.IndexFunc(c.Steps, func(s connection.Step) bool {
		return s.Kind == kind && s.Outcome == connection.Passed
	})
	if i < 0 {
		return nil
	}
	return &c.Steps[i]
}

// byClient are the steps whose sender is the client. The others are of the person's browser, or of
// this service.
var byClient = []connection.Kind{
	connection.Challenge, connection.ResourceMetadata, connection.ServerMetadata, connection.Registration,
	connection.Exchange, connection.Stream, connection.Call, connection.Refresh,
}

// describe sets client, address and agent from the steps. It prefers the agent of the client to
// that of the person's browser.
func (c *Connection) describe() {
	c.Doctor = slices.ContainsFunc(c.Steps, IsDoctor) && !slices.ContainsFunc(c.Steps, func(s connection.Step) bool {
		return s.Agent != "" && !IsDoctor(s)
	})
	for _, step := range c.Steps {
		if c.Client == "" {
			c.Client = step.Client
		}
		if c.Address == "" || c.Agent == "" && slices.Contains(byClient, step.Kind) {
			c.Address = step.Address
			if slices.Contains(byClient, step.Kind) {
				c.Agent = step.Agent
			}
		}
	}
}
