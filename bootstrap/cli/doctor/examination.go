package doctor

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// examination is the state that later checks need.
type examination struct {
	options
	wire    *wire
	blocked map[string]string // the reason, by the ID of a failed or skipped check
	secrets []string          // pairs for strings.NewReplacer

	first     answer // to a request without a token
	challenge string // the resource_metadata of its challenge
	resource  document
	issuer    string // the first of authorization_servers
	server    document
	token     answer // of the token endpoint to an invalid code
	flow      flow
}

// check is a question. why and the fix are printed when it warns or fails.
type check struct {
	id, question string
	needs        []string // IDs of checks that must not fail or be skipped
	why          string
	run          func(*examination, context.Context) finding
}

func newExamination(o options, w *wire) *examination {
	e := &examination{options: o, wire: w, blocked: map[string]string{}}
	e.hide(o.token)
	for _, value := range o.fields {
		if len(value) >= minSecret {
			e.hide(value)
		}
	}
	return e
}

// examine runs all checks in order. It returns an error only when ctx ends.
func (e *examination) examine(ctx context.Context, d *diagnosis, r *reporter) error {
	for _, c := range slices.Concat(metadataChecks, clientChecks, endpointChecks, browserChecks, flowChecks) {
		found := e.find(ctx, c)
		if err := ctx.Err(); err != nil {
			if e.flow.access != "" {
				e.revoke(context.WithoutCancel(ctx))
			}
			return fmt.Errorf("examining %s: %w", e.endpoint, err)
		}
		d.add(found, r)
	}
	return nil
}

// find runs a check, or skips it if its needs are not met.
func (e *examination) find(ctx context.Context, c check) finding {
	run := c.run
	for _, need := range c.needs {
		if reason := e.blocked[need]; reason != "" {
			run = func(*examination, context.Context) finding { return skip("%s", reason) }
		}
	}
	found := run(e, ctx)
	switch found.Status {
	case failure:
		e.blocked[c.id] = "because " + c.id + " failed"
	case skipped:
		e.blocked[c.id] = found.Seen
	}
	found.ID, found.Asks, found.Seen, found.Mend = c.id, c.question, e.clean(found.Seen), e.clean(found.Mend)
	if found.Mend != "" {
		found.Why = c.why
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
