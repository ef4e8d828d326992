package trace

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// expectation describes the step that has to follow another one.
type expectation struct {
	next    Kind
	within  time.Duration
	verdict string // if the step does not follow
	hint    string
}

// clientLimit is the time in which a client takes its next step. personLimit is that of a person:
// the lifetime of the page.
const (
	clientLimit = time.Minute
	personLimit = 10 * time.Minute
)

const doctor = " `pasteport doctor URL` checks this from outside."

const seeLog = "The log has the cause under the id of the request."

// noRegistration is the rule under which a client cannot register itself. A step of the server
// metadata has it if the document names no registration endpoint.
const noRegistration = "F4"

const (
	mustRegister   = "The client has to register itself, and self-registration is off."
	cannotRegister = " A client that has to register itself stops here, because self-registration is off."
)

// withoutRegistration is what follows metadata that names no registration endpoint.
var withoutRegistration = expectation{
	Authorize, clientLimit, "The client read the metadata of the server but never opened the authorization page. " +
		"Probably it has to register itself, and " +
		"self-registration is off.",
	hints[noRegistration] + " Other causes: it refuses an issuer that differs from the requested address, or the " +
		"person did not continue in the browser." + doctor,
}

// readMetadata is the verdict about a client that was not challenged.
const (
	readMetadata = "The client read the metadata only. A client that still has tokens does so when it is started " +
		"again, and then calls the MCP server."
	readMetadataHint = "If people can use the client, nothing is wrong. Otherwise it may refuse an issuer that " +
		"differs from the requested address." + doctor
)

// lacksRegistration reports whether the step is server metadata that names no registration
// endpoint.
func lacksRegistration(step Step) bool {
	return step.Kind == ServerMetadata && step.Rule == noRegistration
}

// mustRegister reports whether the client was told that it cannot register itself, so that it
// cannot have come further.
func (c *Connection) mustRegister() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Kind == Registration && s.Rule == noRegistration })
}

const updateCodex = "Codex 0.143.0 to 0.146.1 always stops here: update it."

// droppedIssuer is what follows a code for a Codex that ignores the iss of its callback.
var droppedIssuer = expectation{
	Exchange, clientLimit, "The code was issued, but Codex never exchanged it: it dropped the iss of the callback " +
		"and then missed it. The mistake is in the client.",
	"Codex 0.143.0 to 0.146.1 does that (openai/codex#31573). Update it, and let the person log in again.",
}

// codex finds its name and, if it tells, its version in a user agent such as codex_cli_rs/0.144.1.
var codex = regexp.MustCompile(`(?i)codex[\w -]*(?:/(\d+)\.(\d+)\.(\d+))?`)

// dropsIssuer reports whether the client is or may be one of the releases of Codex that ignore iss.
func (c *Connection) dropsIssuer() bool {
	version := codex.FindStringSubmatch(c.Agent)
	if version == nil {
		return false
	}
	if version[1] == "" {
		return true
	}
	minor, _ := strconv.Atoi(version[2])
	patch, _ := strconv.Atoi(version[3])
	return version[1] == "0" && (143 <= minor && minor < 146 || minor == 146 && patch <= 1)
}

var expectations = map[Kind]expectation{
	Challenge: {ResourceMetadata, clientLimit,
		"The client received the challenge but never requested the metadata of the resource.",
		"Either the client cannot read the challenge, because a proxy removes or duplicates WWW-Authenticate or the " +
			"browser hides it (CORS), " +
			"or /.well-known/oauth-protected-resource does not reach this service." + doctor},
	ResourceMetadata: {ServerMetadata, clientLimit,
		"The client read the metadata of the resource but never requested that of the server.",
		"The client compares \"resource\" with the URL that it was given, including a trailing slash, and requires " +
			"application/json " +
			"without a redirect. A page in a browser needs CORS headers. The issuer must be reachable under its " +
			"https address." + doctor},
	ServerMetadata: {Authorize, clientLimit,
		"The client read the metadata of the server but never opened the authorization page.",
		"The client refuses an issuer that differs from the requested address, or supports only dynamic registration " +
			"and no Client ID Metadata " +
			"Documents, which self-registration allows, or the person did not continue in the browser." + doctor},
	Authorize:      {Page, clientLimit, "The authorization request was not answered.", seeLog},
	ClientMetadata: {Page, clientLimit, "The authorization request was not answered.", seeLog},
	Page: {TokenJudged, personLimit, "The page was shown, but the person never submitted it.",
		"This is no error: the person closed it, or the form did not reach POST /oauth/authorize."},
	TokenJudged: {CodeIssued, clientLimit, "The token was accepted, but no code was issued.", seeLog},
	CodeIssued: {Exchange, clientLimit, "The code was issued, but the client never exchanged it.",
		"Either the callback of the client was not reached, because the browser runs on another computer or the " +
			"client no longer waits, or POST /oauth/token does not reach this service, because a proxy blocks or " +
			"answers it. If the app runs on another computer than the browser, the person presses the button for " +
			"that on the consent page. " + updateCodex + doctor},
	Exchange: {Call, clientLimit, "The client received its token but never used it.",
		"Either its request to the MCP endpoint does not reach this service, or a proxy removes its Authorization " +
			"header, or the browser " +
			"hides the response (CORS)." + doctor},
	Refresh: {Call, Renewal, "The client refreshes its token but has made no call in the last seven days.",
		"Its requests to the MCP endpoint may not reach this service, or the client is not in use." + doctor},
	Stream: {Call, clientLimit, "The client opened its stream but never sent a message.",
		"The first event, which has the URL for messages, did not arrive: a proxy buffers text/event-stream. Turn " +
			"off its buffering." + doctor},
}

// withVerdict returns the connection with its state, verdict and hint at the time now.
func (c *Connection) withVerdict(now time.Time) Connection {
	c.describe()
	c.acceptOlderRevisions()
	last := c.furthest()
	expected, expects := expectations[last.Kind]
	switch {
	case lacksRegistration(last):
		expected = withoutRegistration
	case last.Kind == CodeIssued && c.dropsIssuer():
		expected = droppedIssuer
	}
	switch {
	case c.Doctor:
		c.State, c.Verdict = Over, "A run of pasteport doctor, which prints a report of its own."
	case c.mustRegister() && discovery[last.Kind]:
		c.State, c.Verdict, c.Hint = Stopped, mustRegister, hints[noRegistration]
	case c.reached(Ended) != nil:
		reason := oauth.EndReason(c.reached(Ended).Reason)
		c.State, c.Verdict, c.Hint = Over, "The connection has ended: "+cmp.Or(endReasonTexts[reason], string(reason)),
			endHints[reason]
	case last.Outcome != Passed && !c.isUsed(last):
		c.State, c.Verdict, c.Hint = Stopped, "The attempt stopped at the step \""+last.Kind.Name()+"\": "+last.Reason,
			hintFor(last)
	case c.isUsed(last) && last.Outcome == Failed:
		c.State, c.Verdict, c.Hint = Connected, "The client is connected, but the step \""+last.Kind.Name()+
			"\" failed: "+last.Reason, hintFor(last)
	case c.isUsed(last) || !expects:
		c.State, c.Verdict = Connected, "The client is connected and has used its token."
		if last.Outcome == Refused {
			c.Hint = hintFor(last)
		}
	case now.Sub(c.since(last)) < expected.within:
		c.State, c.Missing, c.Verdict = UnderWay, expected.next, "Waiting for the step \""+expected.next.Name()+"\"."
		if lacksRegistration(last) {
			c.Verdict, c.Hint = c.Verdict+cannotRegister, hints[noRegistration]
		}
	case last.Kind == ServerMetadata && c.reached(Challenge) == nil && !lacksRegistration(last):
		c.State, c.Verdict, c.Hint = Over, readMetadata, readMetadataHint
	default:
		c.State, c.Missing, c.Verdict, c.Hint = HalfWay, expected.next, expected.verdict, expected.hint
	}
	return *c
}

// furthest returns the last step. Discovery that follows the authorization request changes nothing,
// and without one the step that came furthest counts, because some clients try several paths or
// begin again with another transport.
func (c *Connection) furthest() Step {
	for _, step := range slices.Backward(c.Steps) {
		if !discovery[step.Kind] {
			return step
		}
	}
	last := c.last()
	if last.Outcome != Passed && c.reached(last.Kind) == nil {
		return last
	}
	for _, kind := range []Kind{ServerMetadata, ResourceMetadata, Challenge} {
		if reached := c.reached(kind); reached != nil {
			furthest := *reached
			furthest.At = last.At
			return furthest
		}
	}
	return last
}

// acceptOlderRevisions makes a refused server/discover pass if the client went
// on in an older revision.
func (c *Connection) acceptOlderRevisions() {
	wentOn := false
	for i := len(c.Steps) - 1; i >= 0; i-- {
		step := &c.Steps[i]
		wentOn = wentOn || step.Kind == Call && step.Outcome == Passed
		if wentOn && step.Reason == olderRevision {
			step.Outcome = Passed
		}
	}
}

// isUsed reports whether the client has made a call, unless its refresh was refused afterwards.
func (c *Connection) isUsed(last Step) bool {
	return c.reached(Call) != nil && (last.Outcome == Passed || last.Kind != Refresh)
}

// since returns when the wait for the next step began. A repeated refresh does not restart it.
func (c *Connection) since(last Step) time.Time {
	if last.Kind == Refresh {
		return c.reached(Refresh).At
	}
	return last.At
}

// reached returns the first passed step of the kind, nil if there is none.
func (c *Connection) reached(kind Kind) *Step {
	i := slices.IndexFunc(c.Steps, func(s Step) bool { return s.Kind == kind && s.Outcome == Passed })
	if i < 0 {
		return nil
	}
	return &c.Steps[i]
}

// byClient are the steps whose sender is the client. The others are of the person's
// browser, or of this service.
var byClient = []Kind{Challenge, ResourceMetadata, ServerMetadata, Registration, Exchange, Stream, Call, Refresh}

// describe sets client, address and agent from the steps. It prefers the agent of the client to
// that of the person's browser.
func (c *Connection) describe() {
	c.Doctor = !slices.ContainsFunc(c.Steps, func(s Step) bool {
		return s.Agent != "" && !s.IsDoctor()
	}) && slices.ContainsFunc(c.Steps, Step.IsDoctor)
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
