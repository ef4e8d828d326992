package trace

import (
	"slices"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// sequel is the step that has to follow another.
type sequel struct {
	next   Kind
	within time.Duration
	never  string // the diagnosis when it does not follow
	hint   string
}

// moment is the time that a program has for its next step. A person has the lifetime of the page.
const (
	moment = time.Minute
	person = 10 * time.Minute
)

const doctor = " `pasteport doctor URL` sees such things from outside."

var sequels = map[Kind]sequel{
	Challenge: {ResourceMetadata, moment, "The client was told to log in and never asked for the metadata of the resource.",
		"Either it cannot read the challenge, because a proxy drops or doubles WWW-Authenticate or the browser may not see it (CORS), " +
			"or /.well-known/oauth-protected-resource does not reach this service." + doctor},
	ResourceMetadata: {ServerMetadata, moment, "The client read the metadata of the resource and never asked for that of the server.",
		"It compares \"resource\" byte for byte with the URL that it was given, also a slash at the end, and wants application/json " +
			"without a redirect; a page in a browser may not read it without CORS; the issuer has to be reachable under the https address " +
			"that it names." + doctor},
	ServerMetadata: {Authorize, moment, "The client read the metadata of the server and sent nobody here.",
		"It refuses an issuer that is not the address it asked, or knows dynamic registration only and not Client ID Metadata " +
			"Documents; or nobody went on in the browser." + doctor},
	Registration: {Authorize, moment, "The client asked to be registered, and there is no registration here.",
		"It does not know Client ID Metadata Documents yet: update it, or configure its client_id by hand where it lets you."},
	Authorize:      {Page, moment, "The request for authorization broke off.", "The log has it under the request's id."},
	ClientMetadata: {Page, moment, "The request for authorization broke off.", "The log has it under the request's id."},
	Page: {TokenJudged, person, "The page was shown and nobody answered it.",
		"Nothing is wrong here: the person closed it, or the form did not reach POST /oauth/authorize."},
	TokenJudged: {CodeIssued, moment, "The token was accepted and no code was issued.", "The log has it under the request's id."},
	CodeIssued: {Exchange, moment, "The client was sent its code and never exchanged it.",
		"Its callback was not reached, because the browser runs on another computer than the client or the client has stopped waiting; " +
			"or POST /oauth/token does not reach this service, because a proxy does not pass it on or answers for it." + doctor},
	Exchange: {Call, moment, "The client received its token and never used it.",
		"Its request to the MCP endpoint does not reach this service, a proxy drops its Authorization header, or a browser may not " +
			"read the answer (CORS)." + doctor},
	Refresh: {Call, Renewal, "The client renews its token, and of seven days no call is known.",
		"Its requests to the MCP endpoint may not reach this service, or nobody uses the client." + doctor},
	Stream: {Call, moment, "The client opened its stream and never sent a message.",
		"The first event, which says where to, did not arrive: a proxy holds text/event-stream back. Switch its buffering off." + doctor},
}

func (c *Connection) judged(now time.Time) Connection {
	c.describe()
	last := c.last()
	sequel, waits := sequels[last.Kind]
	switch {
	case c.reached(Ended) != nil:
		reason := oauth.EndReason(c.reached(Ended).Reason)
		c.State, c.Verdict, c.Hint = Over, "The connection has ended: "+endingOf(reason), afterwards[reason]
	case last.Outcome != Passed && !c.works(last) && !c.hadAlready(last):
		c.State, c.Verdict, c.Hint = Stopped, "It stopped at the step \""+last.Kind.Name()+"\": "+last.Reason, hintFor(last)
	case c.works(last) && last.Outcome == Failed:
		c.State, c.Verdict, c.Hint = Connected, "The client is connected, but the step \""+last.Kind.Name()+"\" failed: "+last.Reason, hintFor(last)
	case c.works(last) || !waits:
		c.State, c.Verdict = Connected, "The client is connected and has used its token."
		if last.Outcome == Refused {
			c.Hint = hintFor(last)
		}
	case now.Sub(c.since(last)) < sequel.within:
		c.State, c.Missing, c.Verdict = UnderWay, sequel.next, "Waiting for the step \""+sequel.next.Name()+"\"."
	default:
		c.State, c.Missing, c.Verdict, c.Hint = HalfWay, sequel.next, sequel.never, sequel.hint
	}
	return *c
}

// works reports whether the client has made a call and was not refused a new token since.
func (c *Connection) works(last Step) bool {
	return c.reached(Call) != nil && (last.Outcome == Passed || last.Kind != Refresh)
}

// since returns when the wait for the next step began. A repeated refresh does not restart it.
func (c *Connection) since(last Step) time.Time {
	if last.Kind == Refresh {
		return c.reached(Refresh).At
	}
	return last.At
}

// hadAlready reports whether the client got the document that it failed to find in this step already, as some look in several places.
func (c *Connection) hadAlready(last Step) bool {
	return beginning[last.Kind] && c.reached(last.Kind) != nil
}

// reached returns the first step of the kind that has passed, nil when there is none.
func (c *Connection) reached(kind Kind) *Step {
	i := slices.IndexFunc(c.Steps, func(s Step) bool { return s.Kind == kind && s.Outcome == Passed })
	if i < 0 {
		return nil
	}
	return &c.Steps[i]
}

// describe sets client, address and agent from the steps. It prefers the agent of the client to that of the person's browser.
func (c *Connection) describe() {
	spoken := []Kind{Challenge, ResourceMetadata, ServerMetadata, Registration, Exchange, Stream, Call, Refresh}
	for _, step := range c.Steps {
		if c.Client == "" {
			c.Client = step.Client
		}
		if c.Address == "" || c.Agent == "" && slices.Contains(spoken, step.Kind) {
			c.Address = step.Address
			if slices.Contains(spoken, step.Kind) {
				c.Agent = step.Agent
			}
		}
	}
}
