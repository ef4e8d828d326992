package remote

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/adapters/outbound"
	"github.com/pasteport/pasteport/adapters/presentation"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const probeInterval = 10 * time.Minute

// MCP sends the token to an MCP server: an answer means valid, 401 means invalid (U14). 403 means invalid if the server answers 401 to a request
// without a token. It accepts tokens only after the server has refused a random one, because a server that checks no tokens answers every request.
type MCP struct {
	options  MCPOptions
	client   client
	urlOf    func(credential.Values) (url string, allowed bool)
	answered atomic.Int64 // index of the check that it accepted last
	probed   probes
}

// MCPOptions configures an MCP.
type MCPOptions struct {
	Transport
	URL  string // that outbound.Options.CheckURL accepts, or the text of a credential.Target
	Host string // Host header; "" for that of the URL
	// Presentation is that of the requests through the gateway (U18).
	Presentation presentation.Presentation
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
	switch status, sent, err := m.check(ctx, values); {
	case err != nil:
		return oauth.Principal{}, err
	case status == refused, status == forbidden && m.requiresToken(ctx, values):
		return oauth.Principal{}, oauth.ErrUnknownBearer
	case status == forbidden:
		return oauth.Principal{}, m.client.unavailable(ctx, sent, problem("it answers 403 with the token and without one, so the token may be invalid, or the server refuses the gateway"))
	}
	return oauth.Principal{Scopes: m.options.Scopes}, m.probe(ctx, values)
}

// requiresToken reports whether the server answers 401 to initialize without a token. Then its 403 to a token is about that token; a firewall or
// a server that refuses the gateway answers 403 to both.
func (m *MCP) requiresToken(ctx context.Context, values credential.Values) bool {
	url, _ := m.urlOf(values)
	request, err := m.newRequest(ctx, url, tokenChecks[initialize], presentation.Credentials{})
	if err != nil {
		return false
	}
	got, err := m.client.head(request)
	return err == nil && got.status == http.StatusUnauthorized
}

// probe checks that the server refuses random secrets, separately for each address in the fields, because each can lead to another server.
func (m *MCP) probe(ctx context.Context, values credential.Values) error {
	now, address := m.options.Now(), m.options.Fields.Addresses(values)
	if m.probed.isRecent(address, now) {
		return nil
	}
	switch status, sent, err := m.check(ctx, m.options.Fields.WithSecrets(values, func() string { return "pasteport-probe-" + rand.Text() })); {
	case err != nil:
		return err
	case status == accepted:
		return m.client.unavailable(ctx, sent, mistake("it accepts any token, even a random one: choose another verifier, and credential none if it needs no token"))
	}
	m.probed.record(address, now)
	return nil
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

// tokenCheck is a request that reveals whether a server accepts a token, without side effects.
type tokenCheck struct {
	method, revision, body string
}

// tokenChecks begin with the newest revision. After a 4xx of a server that does not support it, the next one is sent.
var tokenChecks = []tokenCheck{
	{http.MethodPost, "2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"pasteport","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	{http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"pasteport","version":"1"}}}`},
	{http.MethodGet, "", ""}, // HTTP+SSE
}

// initialize is the index of the check that needs no session on any server.
const initialize = 1

const sessionHeader = "Mcp-Session-Id"

// tokenStatus is the meaning of a server's answers to a token.
type tokenStatus int

const (
	accepted tokenStatus = iota + 1
	refused
	forbidden // 403 to initialize, which may also be about the gateway
)

// check sends the checks until one decides. 401 to initialize means that the token is invalid. 401 to another check can mean that a session is
// required, so it counts only if the server does not support initialize. check returns the last request, and an error if none decides.
func (m *MCP) check(ctx context.Context, values credential.Values) (status tokenStatus, sent *http.Request, err error) {
	credentials, err := m.options.Presentation.Render(values)
	if err != nil {
		return 0, nil, oauth.ErrUnknownBearer // no server can have accepted it
	}
	url, allowed := m.urlOf(values)
	if !allowed {
		return 0, nil, oauth.ErrUnknownBearer // its host is not listed any more
	}
	var statuses []string
	unauthorized, unsupported := false, true
	for _, i := range m.order() {
		if sent, err = m.newRequest(ctx, url, tokenChecks[i], credentials); err != nil {
			return 0, nil, fmt.Errorf("verifying a token: %w", err)
		}
		got, err := m.client.head(sent)
		switch {
		case err != nil:
			return 0, sent, m.client.unavailable(ctx, sent, err)
		case outbound.RefusesHost(got.status, got.refusal):
			return 0, sent, m.client.unavailable(ctx, sent, mistake("it refuses the host name of the request: "+outbound.HostAdvice))
		case got.status >= 200 && got.status < 300:
			m.answered.Store(int64(i))
			m.endSession(ctx, url, credentials, got.session)
			return accepted, sent, nil
		case got.status == http.StatusUnauthorized && i == initialize:
			return refused, sent, nil
		case got.status == http.StatusUnauthorized:
			unauthorized = true
		case got.status == http.StatusForbidden && i == initialize && !got.retries:
			status = forbidden
		case !isUnsupported(got.status):
			unsupported = false
		}
		statuses = append(statuses, strconv.Itoa(got.status))
	}
	switch {
	case status == forbidden:
		return forbidden, sent, nil
	case unauthorized && unsupported:
		return refused, sent, nil
	}
	undecided := "it answered " + strings.Join(statuses, ", ") +
		" to server/discover, initialize and GET; 2xx means that a token is valid, 401 to initialize that it is not"
	if unsupported { // no MCP server is at this address
		return 0, sent, m.client.unavailable(ctx, sent, mistake(undecided))
	}
	return 0, sent, m.client.unavailable(ctx, sent, problem(undecided))
}

// isUnsupported reports whether a status means that the server does not support the revision or transport of a check.
func isUnsupported(status int) bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType,
		http.StatusNotImplemented,
	}, status)
}

// order returns the indexes of tokenChecks, first the one that the server accepted last, to save requests.
func (m *MCP) order() []int {
	first := int(m.answered.Load())
	order := []int{first}
	for i := range tokenChecks {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

func (m *MCP) newRequest(ctx context.Context, url string, check tokenCheck, credentials presentation.Credentials) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, check.method, url, strings.NewReader(check.body))
	if err != nil {
		return nil, err
	}
	request.Host = m.options.Host
	credentials.AddTo(request)
	request.Header.Set("Accept", "text/event-stream")
	if check.method == http.MethodPost {
		request.Header.Set("Accept", "application/json, text/event-stream")
		request.Header.Set("Content-Type", "application/json")
	}
	if check.revision != "" {
		request.Header.Set("Mcp-Protocol-Version", check.revision)
		request.Header.Set("Mcp-Method", "server/discover")
	}
	return request, nil
}

const endTimeout = time.Second // of the request that ends a session, for which the caller waits

// endSession ends the session that a check has opened, even after ctx has ended. A server without DELETE expires it itself.
func (m *MCP) endSession(ctx context.Context, url string, credentials presentation.Credentials, session string) {
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, http.NoBody)
	if err != nil {
		return
	}
	request.Host = m.options.Host
	credentials.AddTo(request)
	request.Header.Set(sessionHeader, session)
	_, _ = m.client.head(request)
}
