package check

import (
	"context"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const probeInterval = 10 * time.Minute

// Verifier sends the token to the MCP server itself: an answer means valid, 401 means invalid. 403
// means invalid if the server answers 401 to a request without a token. It accepts tokens only
// after the server has refused a random one, because a server that checks no tokens answers every
// request.
type Verifier struct {
	config       gateway.Config
	presentation secret.Presentation
	scopes       []string
	probe        Probe
	probed       atomic.Pointer[time.Time] // when the server last refused a random secret
	accepted     atomic.Bool               // the server has accepted a key
	refusals     atomic.Int64              // of keys, before the first accepted one
}

// NewVerifier returns a verifier at a URL, which sends tokens as calls do. The config must be
// checked. The scopes limit what every token grants; the server itself decides what a token can do.
func NewVerifier(address string, c gateway.Config, scopes []string) *Verifier {
	return &Verifier{
		config:       c,
		presentation: c.Presentation(),
		scopes:       scopes,
		probe:        Probe{Client: c.Reach.Client(), URL: address, Host: c.Host},
	}
}

var _ oauth.FieldsVerifier = (*Verifier)(nil)

// VerifyBearer implements oauth.BearerVerifier.
func (v *Verifier) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	if !outbound.IsSendable(token) {
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	return v.VerifyFields(ctx, credential.Values{credential.Token: token})
}

// VerifyFields implements oauth.FieldsVerifier.
func (v *Verifier) VerifyFields(ctx context.Context, values map[string]string) (oauth.Principal, error) {
	answer, err := v.ask(ctx, values)
	switch {
	case err != nil:
		return oauth.Principal{}, err
	case answer.RefusesKey():
		return oauth.Principal{}, v.refused(ctx)
	case answer.State != Works:
		return oauth.Principal{}, v.unavailable(ctx, answer)
	}
	if err := v.checkRefusal(ctx, values); err != nil {
		return oauth.Principal{}, err
	}
	v.accepted.Store(true)
	return oauth.Principal{Scopes: v.scopes}, nil
}

// refused returns the error of a key that the server has refused. It states how the key was sent,
// because a server that reads keys from elsewhere refuses every key.
func (v *Verifier) refused(ctx context.Context) error {
	text := "the MCP server refused it, sent " + v.presentation.Sent()
	if v.accepted.Load() {
		return oauth.UnknownBearer(text)
	}
	const advice = "if it reads keys from elsewhere, set present, for example to \"X-Api-Key: {token}\""
	if v.refusals.Add(1) == 3 { // perhaps keys are sent in the wrong way
		v.config.Logger.WarnContext(ctx, "the MCP server has refused every key since the start",
			"sent", v.presentation.Sent(), "remedy", advice)
	}
	return oauth.UnknownBearer(text + "; it has refused every key since the start: " + advice)
}

// checkRefusal checks that the server refuses random secrets.
func (v *Verifier) checkRefusal(ctx context.Context, values credential.Values) error {
	now := v.config.Now()
	if last := v.probed.Load(); last != nil && now.Sub(*last) < probeInterval {
		return nil
	}
	answer, err := v.ask(ctx, v.config.HostFields.WithSecrets(values, RandomKey))
	switch {
	case err != nil:
		return err
	case answer.State == Works:
		return v.unavailable(ctx, AcceptsAny)
	case answer.State == Down:
		return v.unavailable(ctx, answer)
	}
	v.probed.Store(&now) // any other answer differs from the one to the valid key
	return nil
}

// ask returns what the server answers to the values.
func (v *Verifier) ask(ctx context.Context, values credential.Values) (Result, error) {
	credentials, err := v.presentation.Render(values)
	if err != nil {
		return Result{}, oauth.ErrUnknownBearer // no server can have accepted it
	}
	return v.probe.Run(ctx, credentials), nil
}

// unavailable does not name the path of an MCP server, which may have a key.
func (v *Verifier) unavailable(ctx context.Context, answer Result) error {
	to := &url.URL{}
	if at, err := url.Parse(v.probe.URL); err == nil {
		to.Scheme, to.Host = at.Scheme, at.Host
	}
	var reason error = outbound.Problem(answer.String())
	if answer.State == Misconfigured {
		reason = outbound.Mistake(answer.String())
	}
	return outbound.CannotVerify(ctx, v.config.Logger, to, reason)
}
