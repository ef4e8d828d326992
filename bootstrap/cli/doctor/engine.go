package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Options names the server and configures the examination.
type Options struct {
	Endpoint *url.URL          // of the MCP server: https, or http on this computer
	Token    string            // of the site, for the login; "" skips the login
	TokenTo  string            // the one origin besides Endpoint's that may get Token and Fields; "" for none
	Fields   map[string]string // besides the token, at a site that asks for several
	Client   *Client           // the OAuth client of the login; required with Token
	// Serves the document of a Client without ID, if the server publishes none; nil if that is not
	// possible.
	Serve   func() (*Client, error)
	Clients []KnownClient  // of which the report says whether they can log in
	Version string         // of the program, for the User-Agent
	Origin  string         // of a web page that must be able to connect; "" uses an unknown origin
	Roots   *x509.CertPool // nil uses the system's
	Limit   time.Duration  // of each request
	Now     func() time.Time

	// Sends an authorization request for each of Clients with a document, which makes the server
	// fetch the document.
	AskClients bool

	Begins func(question string) // called before each check
	Ends   func(Finding)         // called after each check
}

// examination is the state that later checks need.
type examination struct {
	Options
	wire    *wire
	blocked map[string]string // the reason, by the ID of a failed or skipped check
	secrets []string          // pairs for strings.NewReplacer

	first     answer // to a request without a token
	challenge string // the resource_metadata of its challenge
	resource  document
	issuer    string // the first of authorization_servers
	server    document
	flow      flow
}

// check is one row of a table. why, breaks (the affected clients) and the fix are printed when it
// warns or fails.
type check struct {
	id, question string
	needs        []string // IDs of checks that must not fail or be skipped
	why          string
	breaks       []string
	run          func(*examination, context.Context) checkResult
}

// Examine runs all checks in order. It returns an error only when ctx ends.
func Examine(ctx context.Context, o Options) (Diagnosis, error) {
	e := newExamination(o)
	defer e.wire.close()
	return e.examine(ctx)
}

func newExamination(o Options) *examination {
	e := &examination{Options: o, wire: newWire(o), blocked: map[string]string{}}
	e.hide(o.Token)
	for _, value := range o.Fields {
		if len(value) >= minSecret {
			e.hide(value)
		}
	}
	return e
}

func (e *examination) examine(ctx context.Context) (Diagnosis, error) {
	report := Diagnosis{URL: e.Endpoint.String(), Result: OK}
	for _, c := range slices.Concat(reachChecks, challengeChecks, resourceChecks, serverChecks, clientChecks,
		tokenChecks, browserChecks, flowChecks) {
		e.Begins(c.question)
		found := e.finding(c, e.run(ctx, c))
		if err := ctx.Err(); err != nil {
			if e.flow.access != "" {
				e.revoke(context.WithoutCancel(ctx))
			}
			return report, fmt.Errorf("examining %s: %w", e.Endpoint, err)
		}
		report.Add(found)
		e.Ends(found)
	}
	return report, nil
}

// run skips a check whose needs are not met.
func (e *examination) run(ctx context.Context, c check) checkResult {
	for _, need := range c.needs {
		if reason := e.blocked[need]; reason != "" {
			return skip("%s", reason)
		}
	}
	return c.run(e, ctx)
}

func (e *examination) finding(c check, v checkResult) Finding {
	switch v.status {
	case Failure:
		e.blocked[c.id] = "because " + c.id + " failed"
	case Skipped:
		e.blocked[c.id] = v.seen
	}
	found := Finding{
		ID:      c.id,
		Asks:    c.question,
		Status:  v.status,
		Seen:    e.clean(v.seen),
		Clients: v.clients,
	}
	if v.status == Failure || v.status == Warning {
		found.Why, found.Breaks, found.Mend = c.why, c.breaks, e.clean(v.mend)
	}
	return found
}

// minSecret is the length from which the value of a field can be a secret. To hide a short one,
// such as a name, would spoil the words of the report that contain it.
const minSecret = 6

// hide keeps secrets out of the report.
func (e *examination) hide(secrets ...string) {
	for _, secret := range secrets {
		if secret != "" {
			e.secrets = append(e.secrets, secret, "[secret]", url.QueryEscape(secret), "[secret]")
		}
	}
}

const maxText = 600 // bytes of a server's text in a report

// clean removes secrets and control characters from a server's text, and cuts it to maxText.
func (e *examination) clean(text string) string {
	text = strings.NewReplacer(e.secrets...).Replace(text)
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
