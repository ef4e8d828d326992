// Package check asks an MCP server whether it accepts a credential, without side effects. Probe.Run
// sends requests until one decides, and returns a Result: a State of a closed list, with the cause
// and the remedy, for the verifier of pasted tokens, the start of a gateway, /readyz, the metrics
// and doctor.
package check

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/mcp/message"
)

// Probe sends requests to one server.
type Probe struct {
	Client *http.Client // follows no redirect
	URL    string
	Host   string // the Host header; "" for that of the URL
	// Sign adds what authenticates the gateway besides the credentials; nil for nothing.
	Sign func(request *http.Request, body []byte)
}

// request reveals whether a server accepts a credential.
type request struct {
	method, revision, name, body string
}

// requests begin with the newest revision. After a 4xx of a server that does not support one, the
// next is sent.
var requests = []request{
	{http.MethodPost, "2026-07-28", "server/discover",
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"pasteport","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	{http.MethodPost, "", "initialize",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"pasteport","version":"1"}}}`},
}

// Initialize is the index of the request that needs no session on any server.
const Initialize = 1

// Answer is the result of a probe with the request that decided.
type Answer struct {
	Result
	Request *http.Request // the last one
	Index   int           // of the request that was accepted
}

// Run sends the requests until one decides, first the one with the index. 401 to initialize means
// that the credential is refused. 401 to another request can mean that a session is required, so it
// counts only if the server does not support initialize. 403, 400 and 422 refuse the credential if
// the server answers 401 without one; otherwise they may also be about the gateway.
func (p Probe) Run(ctx context.Context, credentials secret.Credentials, first int) (answer Answer, err error) {
	seen := answers{}
	for _, i := range beginningWith(first) {
		sent, err := p.newRequest(ctx, requests[i], credentials)
		if err != nil {
			return answer, err
		}
		answer.Request, answer.Index = sent, i
		got, err := p.head(sent)
		if err != nil {
			answer.Result = judgeError(err)
			return answer, nil
		}
		if got.isSuccess() {
			p.endSession(ctx, credentials, got)
		}
		var decided bool
		if answer.Result, decided = seen.judge(got, i); decided {
			return answer, nil
		}
	}
	answer.Result = seen.conclude()
	switch {
	case (answer.IsMistake() || seen.invalid) && p.ask(ctx, listen, credentials).content == resultOfMCP:
		answer.Result = speaksOldTransport
	case (answer.State == Forbids || seen.invalid) && p.refusesWithout(ctx):
		answer.Result = refusesKeys("")
	}
	return answer, nil
}

// listen is the first request of HTTP+SSE. Its answer is a stream, although initialize has failed.
var listen = request{method: http.MethodGet}

// RandomKey returns a key that no server has issued.
func RandomKey() string { return "pasteport-probe-" + rand.Text() }

// beginningWith returns the indexes of all requests.
func beginningWith(first int) []int {
	order := []int{first}
	for i := range requests {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

// refusesWithout reports whether the server answers 401 to initialize without a credential. Then
// its refusal of a credential is about that credential; a firewall or a server that refuses the
// gateway answers 403 to both.
func (p Probe) refusesWithout(ctx context.Context) bool {
	return p.ask(ctx, requests[Initialize], secret.Credentials{}).status == http.StatusUnauthorized
}

// ask returns the answer to a request, the zero value without one.
func (p Probe) ask(ctx context.Context, r request, credentials secret.Credentials) head {
	request, err := p.newRequest(ctx, r, credentials)
	if err != nil {
		return head{}
	}
	got, _ := p.head(request)
	return got
}

func (p Probe) newRequest(ctx context.Context, r request, credentials secret.Credentials) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, p.URL, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	request.Host = p.Host
	request.Header[outbound.Repeatable] = nil
	credentials.AddTo(request)
	// For the log of the server, in which a key of RandomKey needs an explanation.
	request.Header.Set("User-Agent", "pasteport")
	request.Header.Set("Accept", "text/event-stream")
	if r.method == http.MethodPost {
		request.Header.Set("Accept", "application/json, text/event-stream")
		request.Header.Set("Content-Type", "application/json")
	}
	if r.revision != "" {
		request.Header.Set(message.VersionHeader, r.revision)
		request.Header.Set(message.MethodHeader, r.name)
	}
	if p.Sign != nil {
		p.Sign(request, []byte(r.body))
	}
	return request, nil
}

const endTimeout = time.Second // of the request that ends a session, for which the caller waits

// endSession ends the session that a request has opened, even after ctx has ended. A server without
// DELETE expires it itself.
func (p Probe) endSession(ctx context.Context, credentials secret.Credentials, opened head) {
	if opened.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	request, err := p.newRequest(ctx, request{method: http.MethodDelete}, credentials)
	if err != nil {
		return
	}
	request.Header.Set(message.SessionHeader, opened.session)
	for _, cookie := range opened.cookies { // by which a balancer finds the session
		//nolint:gosec // a request has no attributes
		request.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value, Quoted: cookie.Quoted})
	}
	_, _ = p.head(request)
}
