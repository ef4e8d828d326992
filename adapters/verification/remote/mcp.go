package remote

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const probeInterval = 10 * time.Minute

// MCP sends the token to an MCP server: an answer means valid, 401 means invalid. 403 means invalid
// if the server answers 401 to a request without a token. It accepts tokens only after the server
// has refused a random one, because a server that checks no tokens answers every request.
type MCP struct {
	options  MCPOptions
	client   client
	urlOf    func(credential.Values) (url string, allowed bool)
	answered atomic.Int64 // index of the request that it accepted last
	probed   probes
	accepted atomic.Bool  // a key
	refusals atomic.Int64 // before the first accepted key
}

// MCPOptions configures an MCP.
type MCPOptions struct {
	Transport
	URL  string // that outbound.Options.CheckURL accepts, or the text of a credential.Target
	Host string // Host header; "" for that of the URL
	// Presentation is that of the requests through the gateway.
	Presentation secret.Presentation
	Fields       credential.Fields // that the Presentation presents; nil for the token
	// Scopes limits what every token grants. The server itself decides what a token can do.
	Scopes []string
	Now    func() time.Time // nil for time.Now
}

// NewMCP returns a verifier. The options must be checked.
func NewMCP(o MCPOptions) *MCP {
	m := &MCP{options: o, urlOf: func(credential.Values) (string, bool) { return o.URL, true }}
	if credential.IsTarget(o.URL) {
		target, _ := o.Fields.ParseTarget(o.URL) // was checked
		m.urlOf = target.URL
	}
	if o.Now == nil {
		m.options.Now = time.Now
	}
	m.client = newClient(o.Transport)
	return m
}

var _ oauth.FieldsVerifier = (*MCP)(nil)

// VerifyBearer implements oauth.BearerVerifier.
func (m *MCP) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	if !sendable(token) {
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	return m.VerifyFields(ctx, credential.Values{credential.Token: token})
}

// VerifyFields implements oauth.FieldsVerifier.
func (m *MCP) VerifyFields(ctx context.Context, values map[string]string) (oauth.Principal, error) {
	answer, err := m.ask(ctx, values)
	switch {
	case err != nil:
		return oauth.Principal{}, err
	case answer.State == check.RefusesKeys:
		return oauth.Principal{}, m.refused(ctx)
	case answer.State != check.Accepted:
		return oauth.Principal{}, m.unavailable(ctx, answer)
	}
	m.accepted.Store(true)
	return oauth.Principal{Scopes: m.options.Scopes}, m.checkRefusal(ctx, values)
}

// suspicious is the number of refused keys without an accepted one after which the way
// to send them may be wrong.
const suspicious = 3

// refused returns the error of a key that the server has refused. It states how the key was sent,
// because a server that reads keys from elsewhere refuses every key.
func (m *MCP) refused(ctx context.Context) error {
	text := "the MCP server refused it, sent " + m.options.Presentation.Sent()
	if m.accepted.Load() {
		return oauth.UnknownBearer(text)
	}
	const advice = "if it reads keys from elsewhere, set present, for example to \"X-Api-Key: {token}\""
	if m.refusals.Add(1) == suspicious {
		m.client.logger.WarnContext(ctx, "the MCP server has refused every key since the start",
			"sent", m.options.Presentation.Sent(), "remedy", advice)
	}
	return oauth.UnknownBearer(text + "; it has refused every key since the start: " + advice)
}

// checkRefusal checks that the server refuses random secrets, separately for each address in the
// fields, because each can lead to another server.
func (m *MCP) checkRefusal(ctx context.Context, values credential.Values) error {
	now, address := m.options.Now(), m.options.Fields.Addresses(values)
	if m.probed.isRecent(address, now) {
		return nil
	}
	answer, err := m.ask(ctx, m.options.Fields.WithSecrets(values, check.RandomKey))
	switch {
	case err != nil:
		return err
	case answer.State == check.Accepted:
		answer.State = check.AcceptsAny
		return m.unavailable(ctx, answer)
	case answer.State != check.RefusesKeys && answer.State != check.Forbids:
		return m.unavailable(ctx, answer)
	}
	m.probed.record(address, now)
	return nil
}

// ask returns what the server answers to the values.
func (m *MCP) ask(ctx context.Context, values credential.Values) (check.Answer, error) {
	credentials, err := m.options.Presentation.Render(values)
	if err != nil {
		return check.Answer{}, oauth.ErrUnknownBearer // no server can have accepted it
	}
	address, allowed := m.urlOf(values)
	if !allowed {
		return check.Answer{}, oauth.ErrUnknownBearer // its host is not listed any more
	}
	asked := check.Probe{Client: m.client.http, URL: address, Host: m.options.Host}
	// First the request that the server accepted last, to save requests.
	answer, err := asked.Run(ctx, credentials, int(m.answered.Load()))
	if err != nil {
		return answer, fmt.Errorf("verifying a token: %w", err)
	}
	if answer.State == check.Accepted {
		m.answered.Store(int64(answer.Index))
	}
	return answer, nil
}

// unavailable does not name the path of an MCP server, which may have a key.
func (m *MCP) unavailable(ctx context.Context, answer check.Answer) error {
	to := &url.URL{Scheme: answer.Request.URL.Scheme, Host: answer.Request.URL.Host}
	if answer.State == check.Redirects {
		answer.Detail = "elsewhere" // the target may contain a part of the person's token that cannot be recognised
	}
	if answer.IsMistake() {
		return m.client.unavailable(ctx, to, mistake(answer.String()))
	}
	return m.client.unavailable(ctx, to, problem(answer.String()))
}

// probes are the times at which the server at each address last refused a random secret.
type probes struct {
	lock sync.Mutex
	at   map[string]time.Time
}

// maxProbes bounds the addresses that are remembered.
const maxProbes = 1000

func (p *probes) isRecent(address string, now time.Time) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	last, known := p.at[address]
	return known && now.Sub(last) < probeInterval
}

func (p *probes) record(address string, now time.Time) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.at == nil || len(p.at) >= maxProbes {
		p.at = map[string]time.Time{}
	}
	p.at[address] = now
}
