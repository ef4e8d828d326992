package remote

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/adapters/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

// probeLife is for how long an MCP server that has refused a made-up token is believed to look at tokens.
const probeLife = 10 * time.Minute

// MCP asks an MCP server itself: 401 says that the token does not hold, and an answer that it does (U14). The server is believed only
// after it has refused a token that nobody can have.
type MCP struct {
	url     string
	host    string // that it is asked under
	client  client
	scopes  []string
	now     func() time.Time
	spoken  atomic.Int64              // the question that it understands
	refused atomic.Pointer[time.Time] // when it last refused a made-up token
}

// MCPOptions are what it takes to ask an MCP server.
type MCPOptions struct {
	Transport
	URL  string // which CheckURL has passed
	Host string // that it is asked under; "" for that of the URL
	// Scopes are what any token may grant: the server itself decides what a token can do, and scopes say which of that a client may.
	Scopes []string
	Now    func() time.Time // time.Now when nil
}

// NewMCP expects options that have been checked.
func NewMCP(o MCPOptions) *MCP {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &MCP{url: o.URL, host: o.Host, client: newClient(o.Transport), scopes: o.Scopes, now: o.Now}
}

var _ oauth.BearerVerifier = (*MCP)(nil)

// VerifyBearer implements oauth.BearerVerifier.
func (m *MCP) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	if !sendable(token) {
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	known, _, err := m.knows(ctx, token)
	switch {
	case err != nil:
		return oauth.Principal{}, err
	case !known:
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	return oauth.Principal{Scopes: m.scopes}, m.probe(ctx)
}

// probe makes sure that the server does not let everybody in.
func (m *MCP) probe(ctx context.Context) error {
	if last := m.refused.Load(); last != nil && m.now().Sub(*last) < probeLife {
		return nil
	}
	let, asked, err := m.knows(ctx, "pasteport-probe-"+rand.Text())
	switch {
	case err != nil:
		return err
	case let:
		return m.client.unavailable(ctx, asked, problem("it takes any token, even one that was made up: choose another verifier, and credential none if it needs no token"))
	}
	now := m.now()
	m.refused.Store(&now)
	return nil
}

// question is a way to find out whether a server lets a token in; it changes nothing there.
type question struct {
	method, revision, body string
}

// The questions, from the newest revision on. A server that does not speak one says so with 4xx, and is asked the next.
var questions = []question{
	{http.MethodPost, "2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"pasteport","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	{http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"pasteport","version":"1"}}}`},
	{http.MethodGet, "", ""}, // HTTP+SSE
}

// initialize is the index of the question that needs no session on any server.
const initialize = 1

const sessionHeader = "Mcp-Session-Id"

// knows also returns the last request that it took to find out. A 401 to initialize says that the token does not hold. To the other
// questions it may say that they need a session, so it counts only when the server does not speak initialize.
func (m *MCP) knows(ctx context.Context, token string) (known bool, asked *http.Request, err error) {
	var statuses []string
	unauthorized, speechless := false, true
	for _, i := range m.order() {
		if asked, err = m.ask(ctx, questions[i], token); err != nil {
			return false, nil, fmt.Errorf("asking about a token: %w", err)
		}
		got, err := m.client.head(asked)
		switch {
		case err != nil:
			return false, asked, m.client.unavailable(ctx, asked, err)
		case outbound.RefusesHost(got.status, got.refusal):
			return false, asked, m.client.unavailable(ctx, asked, problem("it does not know the host name that it is asked under: "+outbound.MendHost))
		case got.status >= 200 && got.status < 300:
			m.spoken.Store(int64(i))
			m.leave(ctx, token, got.session)
			return true, asked, nil
		case got.status == http.StatusUnauthorized && i == initialize:
			return false, asked, nil
		case got.status == http.StatusUnauthorized:
			unauthorized = true
		case !unspoken(got.status):
			speechless = false
		}
		statuses = append(statuses, strconv.Itoa(got.status))
	}
	if unauthorized && speechless {
		return false, asked, nil
	}
	return false, asked, m.client.unavailable(ctx, asked, problem("it answered "+strings.Join(statuses, ", ")+
		" to server/discover, initialize and GET; 2xx says that a token holds, 401 to initialize that it does not"))
}

// unspoken reports that a server answers a question so because it does not speak that revision or transport.
func unspoken(status int) bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType,
		http.StatusNotImplemented,
	}, status)
}

// order begins with the question that was understood last time, because nobody waits for long.
func (m *MCP) order() []int {
	first := int(m.spoken.Load())
	order := []int{first}
	for i := range questions {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

func (m *MCP) ask(ctx context.Context, q question, token string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, q.method, m.url, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	request.Host = m.host
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/event-stream")
	if q.method == http.MethodPost {
		request.Header.Set("Accept", "application/json, text/event-stream")
		request.Header.Set("Content-Type", "application/json")
	}
	if q.revision != "" {
		request.Header.Set("Mcp-Protocol-Version", q.revision)
		request.Header.Set("Mcp-Method", "server/discover")
	}
	return request, nil
}

// leaveLimit is how long an answer may be held up by a session that is given back.
const leaveLimit = time.Second

// leave ends the session that a question has opened, also when there is no time left for the question; a server that does not know
// how forgets it by itself.
func (m *MCP) leave(ctx context.Context, token, session string) {
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, m.url, http.NoBody)
	if err != nil {
		return
	}
	request.Host = m.host
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set(sessionHeader, session)
	_, _ = m.client.head(request)
}
