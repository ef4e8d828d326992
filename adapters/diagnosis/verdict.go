package diagnosis

import (
	"cmp"
	"slices"
	"time"

	"github.com/pasteport/pasteport/domain/trace"
)

// clientLimit is the time in which a client takes its next step. personLimit is that of a person:
// the lifetime of the page.
const (
	clientLimit = time.Minute
	personLimit = 10 * time.Minute
)

// expectation is the step that has to follow another one.
type expectation struct {
	next   trace.Kind
	within time.Duration
}

var expectations = map[trace.Kind]expectation{
	trace.Challenge:        {trace.ResourceMetadata, clientLimit},
	trace.ResourceMetadata: {trace.ServerMetadata, clientLimit},
	trace.ServerMetadata:   {trace.Authorize, clientLimit},
	trace.Authorize:        {trace.Page, clientLimit},
	trace.ClientMetadata:   {trace.Page, clientLimit},
	trace.Page:             {trace.TokenJudged, personLimit},
	trace.TokenJudged:      {trace.CodeIssued, clientLimit},
	trace.CodeIssued:       {trace.Exchange, clientLimit},
	trace.Exchange:         {trace.Call, clientLimit},
	trace.Refresh:          {trace.Call, trace.Renewal},
	trace.Stream:           {trace.Call, clientLimit},
}

// noRegistration is the rule under which a client cannot register itself. A step of the server
// metadata has it if the document names no registration endpoint.
const noRegistration = "F4"

// mustRegister reports whether the client was told that it cannot register itself, so that it
// cannot have come further.
func (c *Connection) mustRegister() bool {
	return slices.ContainsFunc(c.Steps, func(s trace.Step) bool {
		return s.Kind == trace.Registration && s.Rule == noRegistration
	})
}

// withVerdict returns the connection with its state, verdict and hint at the time now.
func (c *Connection) withVerdict(now time.Time) Connection {
	c.describe()
	c.acceptOlderRevisions()
	last := c.furthest()
	expected, expects := expectations[last.Kind]
	lacksRegistration := last.Kind == trace.ServerMetadata && last.Rule == noRegistration
	switch {
	case c.Doctor:
		c.State, c.Verdict = Over, "A run of pasteport doctor, which prints a report of its own."
	case c.mustRegister() && discovery[last.Kind]:
		c.State, c.Verdict, c.Hint = Stopped, "The client has to register itself, and self-registration is off.",
			advice[noRegistration]
	case c.reached(trace.Ended) != nil:
		reason := c.reached(trace.Ended).Reason
		c.State, c.Verdict, c.Hint = Over, "The connection has ended: "+cmp.Or(advice[reason+".verdict"], reason),
			advice[reason+".hint"]
	case last.Outcome != trace.Passed && !c.isUsed(last):
		c.State, c.Verdict, c.Hint = Stopped, "The attempt stopped at the step \""+last.Kind.Name()+"\": "+last.Reason,
			hintFor(last)
	case c.isUsed(last) && last.Outcome == trace.Failed:
		c.State, c.Verdict, c.Hint = Connected, "The client is connected, but the step \""+last.Kind.Name()+
			"\" failed: "+last.Reason, hintFor(last)
	case c.isUsed(last) || !expects:
		c.State, c.Verdict = Connected, "The client is connected and has used its token."
		if last.Outcome == trace.Refused {
			c.Hint = hintFor(last)
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

// furthest returns the last step. Discovery that follows the authorization request changes nothing,
// and without one the step that came furthest counts, because some clients try several paths or
// begin again with another transport.
func (c *Connection) furthest() trace.Step {
	for _, step := range slices.Backward(c.Steps) {
		if !discovery[step.Kind] {
			return step
		}
	}
	last := c.last()
	if last.Outcome != trace.Passed && c.reached(last.Kind) == nil {
		return last
	}
	for _, kind := range []trace.Kind{trace.ServerMetadata, trace.ResourceMetadata, trace.Challenge} {
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
		wentOn = wentOn || step.Kind == trace.Call && step.Outcome == trace.Passed
		if wentOn && step.Reason == trace.OlderRevision {
			step.Outcome = trace.Passed
		}
	}
}

// isUsed reports whether the client has made a call, unless its refresh was refused afterwards.
func (c *Connection) isUsed(last trace.Step) bool {
	return c.reached(trace.Call) != nil && (last.Outcome == trace.Passed || last.Kind != trace.Refresh)
}

// since returns when the wait for the next step began. A repeated refresh does not restart it.
func (c *Connection) since(last trace.Step) time.Time {
	if last.Kind == trace.Refresh {
		return c.reached(trace.Refresh).At
	}
	return last.At
}

// reached returns the first passed step of the kind, nil if there is none.
func (c *Connection) reached(kind trace.Kind) *trace.Step {
	i := slices.IndexFunc(c.Steps, func(s trace.Step) bool { return s.Kind == kind && s.Outcome == trace.Passed })
	if i < 0 {
		return nil
	}
	return &c.Steps[i]
}

// byClient are the steps whose sender is the client. The others are of the person's browser, or of
// this service.
var byClient = []trace.Kind{trace.Challenge, trace.ResourceMetadata, trace.ServerMetadata, trace.Registration,
	trace.Exchange, trace.Stream, trace.Call, trace.Refresh}

// describe sets client, address and agent from the steps. It prefers the agent of the client to
// that of the person's browser.
func (c *Connection) describe() {
	c.Doctor = slices.ContainsFunc(c.Steps, IsDoctor) && !slices.ContainsFunc(c.Steps, func(s trace.Step) bool {
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
