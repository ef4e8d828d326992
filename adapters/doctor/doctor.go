// Package doctor examines an MCP server with OAuth from outside, as its clients meet it: any server, not only ours. Every request
// is bounded in time and size, no redirect is followed, and nobody is asked but the given URL and what its metadata names.
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

// Options says what is examined, and how.
type Options struct {
	Endpoint *url.URL       // of the MCP server, https, or http on this computer
	Token    string         // of the site, to go through the whole flow; "" leaves the flow out
	Client   *Client        // as whom; needed with Token
	Origin   string         // of a page that shall be able to connect; "" asks as one that nobody knows
	Roots    *x509.CertPool // nil: the system's
	Limit    time.Duration  // for each request
	Now      func() time.Time

	Begins func(question string) // told before each check
	Ends   func(Finding)         // told after each check
}

// examination is what has been learned so far.
type examination struct {
	Options
	wire    *wire
	unmet   map[string]string // checks on which others cannot build, and why not
	secrets []string          // never shown, wherever they come back

	first     answer // to a request without a token
	challenge string // the address of the resource metadata that it names
	resource  document
	issuer    string // the authorization server that the resource names
	server    document
	flow      flow
}

// check is one question to the deployment.
type check struct {
	id, asks string
	needs    []string // checks that must have gone well
	why      string
	breaks   []string
	look     func(*examination, context.Context) verdict
}

// Examine asks everything, in order. It fails only when ctx ends.
func Examine(ctx context.Context, o Options) (Diagnosis, error) {
	e := newExamination(o)
	defer e.wire.close()
	return e.examine(ctx)
}

func newExamination(o Options) *examination {
	e := &examination{Options: o, wire: newWire(o), unmet: map[string]string{}}
	e.hide(o.Token)
	return e
}

func (e *examination) examine(ctx context.Context) (Diagnosis, error) {
	report := Diagnosis{URL: e.Endpoint.String(), Result: OK}
	for _, c := range slices.Concat(reaching, challenging, resourceChecks, serverChecks, tokenChecks, browserChecks, flowChecks) {
		e.Begins(c.asks)
		found := e.finding(c, e.judge(ctx, c))
		if err := ctx.Err(); err != nil {
			e.giveBack(context.WithoutCancel(ctx))
			return report, fmt.Errorf("examining %s: %w", e.Endpoint, err)
		}
		report.add(found)
		e.Ends(found)
	}
	return report, nil
}

// judge asks the question if what it builds on went well.
func (e *examination) judge(ctx context.Context, c check) verdict {
	for _, need := range c.needs {
		if reason := e.unmet[need]; reason != "" {
			return skip("%s", reason)
		}
	}
	return c.look(e, ctx)
}

func (e *examination) finding(c check, v verdict) Finding {
	switch v.status {
	case Failure:
		e.unmet[c.id] = "because " + c.id + " failed"
	case Skipped:
		e.unmet[c.id] = v.seen
	}
	found := Finding{ID: c.id, Asks: c.asks, Status: v.status, Seen: e.clean(v.seen)}
	if v.status == Failure || v.status == Warning {
		found.Why, found.Breaks, found.Mend = c.why, c.breaks, e.clean(v.mend)
	}
	return found
}

// hide keeps a secret out of everything that is shown.
func (e *examination) hide(secrets ...string) {
	for _, secret := range secrets {
		if secret != "" {
			e.secrets = append(e.secrets, secret, "[secret]", url.QueryEscape(secret), "[secret]")
		}
	}
}

const maxText = 600 // bytes of what a server may say in a report

// clean makes a text of a server fit to be shown: without secrets, without what a terminal would obey, and not too long.
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
