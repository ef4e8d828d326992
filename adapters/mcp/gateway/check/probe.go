// Package check asks an MCP server whether it works and accepts a credential, without side effects.
// Probe.Run returns a Result: one of four states with the cause and the remedy, for the verifier of
// pasted tokens, the start of a gateway, /readyz, the metrics and doctor.
package check

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
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

// question is what differs between the requests of a probe. mcpMethod is sent with a revision only.
type question struct{ method, revision, mcpMethod, body string }

var (
	initialize = question{http.MethodPost, "", "initialize",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"pasteport","version":"1"}}}`}
	// discover is for a server that has only revisions without initialize.
	discover = question{http.MethodPost, "2026-07-28", "server/discover",
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"pasteport","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`}
	// listen is the first request of HTTP+SSE, whose answer is a stream.
	listen = question{method: http.MethodGet}
)

// Run asks the server to initialize with the credentials, or to discover if it seems to know only
// other revisions.
func (p Probe) Run(ctx context.Context, credentials secret.Credentials) Result {
	got := p.send(ctx, initialize, credentials)
	if !got.isUnsupported() {
		return p.judge(ctx, got)
	}
	newer := p.send(ctx, discover, credentials)
	switch {
	case newer.isResult() || newer.status == http.StatusUnauthorized:
		return p.judge(ctx, newer)
	case p.send(ctx, listen, credentials).isEventStream():
		return Mistake("it speaks HTTP+SSE of 2024-11-05", "run it with Streamable HTTP")
	}
	return p.judge(ctx, got)
}

// RandomKey returns a key that no server has issued.
func RandomKey() string { return "pasteport-probe-" + rand.Text() }

const (
	maxAnswer    = 1 << 20 // bytes of a result, which has the instructions of the server
	longestRetry = time.Hour
)

// answer is a response to a probe.
type answer struct {
	err        error
	status     int
	isHTML     bool
	isStream   bool   // the response is a stream of events
	body       []byte // nil for a stream, which can be endless
	target     string // of a redirect, in our own words
	retryAfter time.Duration
}

func (a answer) isSuccess() bool { return a.status >= 200 && a.status < 300 }

func (a answer) isEventStream() bool { return a.isSuccess() && a.isStream }

func (a answer) isResult() bool {
	return a.isEventStream() || a.isSuccess() && message.DecodeOnly(a.body).Result.Kind() == '{'
}

// isUnsupported reports whether a server of another revision or transport can answer like this.
func (a answer) isUnsupported() bool {
	switch a.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return !outbound.RefusesHost(a.status, a.body)
	}
	return a.isSuccess() && message.DecodeOnly(a.body).Error != nil
}

// judge judges an answer. After 403, 400, 422 or an error of JSON-RPC it asks again without the
// credentials: if it gets 401 then, the server refuses the credentials; otherwise the server may
// refuse the gateway itself.
func (p Probe) judge(ctx context.Context, got answer) Result {
	status := strconv.Itoa(got.status)
	switch {
	case got.err != nil:
		return judgeError(got.err)
	case outbound.RefusesHost(got.status, got.body):
		return Mistake("it refuses the host name of the request with "+status, outbound.HostAdvice)
	case got.isSuccess() && got.isHTML:
		return Mistake("it answered with an HTML page, so that it is not an MCP server",
			pathRemedy+", not to a page for people")
	case got.isResult():
		return Result{State: Works, Cause: "reachable"}
	case got.status == http.StatusUnauthorized:
		return Result{State: Refuses, Cause: "reachable, refuses unknown keys"}
	case got.status == http.StatusTooManyRequests, got.status >= 500, got.retryAfter > 0:
		return Result{Down, "it answered " + status, serverRemedy, got.retryAfter}
	case got.status == http.StatusForbidden, got.status == http.StatusBadRequest,
		got.status == http.StatusUnprocessableEntity, got.isSuccess() && message.DecodeOnly(got.body).Error != nil:
		if p.send(ctx, initialize, secret.Credentials{}).status == http.StatusUnauthorized {
			return Result{State: Refuses, Cause: "reachable, refuses unknown keys"}
		}
		return Result{State: Refuses, Cause: "it refuses the request with " + status, Remedy: keyRemedy}
	case got.status >= 300 && got.status < 400:
		return Mistake("it redirects "+got.target+", which is not followed",
			"set upstream to the address of the MCP server itself")
	}
	return Mistake("it answered "+status+" to initialize, and not as an MCP server", pathRemedy)
}

// send returns the response to a question.
func (p Probe) send(ctx context.Context, q question, credentials secret.Credentials) (got answer) {
	request, err := p.newRequest(ctx, q, credentials)
	if err != nil {
		return answer{err: err}
	}
	response, err := p.Client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	defer p.endSession(ctx, credentials, response)
	got = answer{
		status:   response.StatusCode,
		isHTML:   strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/html"),
		isStream: message.IsEventStream(response.Header),
		target:   outbound.Target(response),
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		got.retryAfter = time.Duration(min(seconds, int(longestRetry/time.Second))) * time.Second
	}
	if !got.isEventStream() {
		got.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	}
	if err != nil && got.isSuccess() {
		got.err = fmt.Errorf("reading the response: %w", err)
	}
	return got
}

func (p Probe) newRequest(ctx context.Context, q question, credentials secret.Credentials) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, q.method, p.URL, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	request.Host = p.Host
	request.Header[outbound.Repeatable] = nil // not sent: it lets net/http send the request twice
	credentials.AddTo(request)
	// For the log of the server, in which a key of RandomKey needs an explanation.
	request.Header.Set("User-Agent", "pasteport")
	request.Header.Set("Accept", message.EventStream)
	if q.method == http.MethodPost {
		request.Header.Set("Accept", "application/json, "+message.EventStream)
		request.Header.Set("Content-Type", "application/json")
	}
	if q.revision != "" {
		request.Header.Set(message.VersionHeader, q.revision)
		request.Header.Set(message.MethodHeader, q.mcpMethod)
	}
	if p.Sign != nil {
		p.Sign(request, []byte(q.body))
	}
	return request, nil
}

// endSession ends the session that a request has opened, even after ctx has ended. A server that
// does not support DELETE lets the session expire.
func (p Probe) endSession(ctx context.Context, credentials secret.Credentials, opened *http.Response) {
	session := opened.Header.Get(message.SessionHeader)
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // short, as the caller waits
	defer cancel()
	request, err := p.newRequest(ctx, question{method: http.MethodDelete}, credentials)
	if err != nil {
		return
	}
	request.Header.Set(message.SessionHeader, session)
	for _, cookie := range opened.Cookies() { // by which a balancer finds the session
		request.AddCookie(cookie)
	}
	if ended, err := p.Client.Do(request); err == nil {
		_ = ended.Body.Close()
	}
}

// State is what a probe has found.
type State string

// The states. People can connect in the first three.
const (
	NotChecked    State = "not-checked"
	Works         State = "works"
	Refuses       State = "refuses"       // the credential, or perhaps the gateway
	Down          State = "down"          // an outage, which may pass by itself
	Misconfigured State = "misconfigured" // until the operator corrects something
)

// Result is the judgement of a probe. Its texts are for operators and contain no secret.
type Result struct {
	State      State
	Cause      string        // completes "the server …"
	Remedy     string        // what to do; "" for nothing
	RetryAfter time.Duration // until the server wants the next request; 0 if it names no time
}

// Unknown is the result before the first probe.
var Unknown = Result{State: NotChecked, Cause: "not checked yet"}

// IsProblem reports whether people cannot connect.
func (r Result) IsProblem() bool { return r.State == Down || r.State == Misconfigured }

// RefusesKey reports a refusal of the key; one that may be of the gateway has a remedy.
func (r Result) RefusesKey() bool { return r.State == Refuses && r.Remedy == "" }

// String returns the cause and the remedy.
func (r Result) String() string {
	if r.Remedy == "" {
		return r.Cause
	}
	return r.Cause + ": " + r.Remedy
}

// Mistake returns the result for a mistake of the operator.
func Mistake(cause, remedy string) Result { return Result{Misconfigured, cause, remedy, 0} }

// AcceptsAny is the result for a verifier of keys that accepts a random one.
var AcceptsAny = Mistake("it accepts any token, even a random one", "let the server check tokens, or choose another "+
	"verifier (file, http or introspection), and credential none if the server needs no token")

const (
	pathRemedy    = "set upstream to the full URL of the MCP endpoint, which often ends in /mcp"
	serverRemedy  = "read its log and check its load; if it is a proxy, check the server behind it"
	addressRemedy = "start the MCP server, or correct upstream; in a container, localhost and 127.0.0.1 are the " +
		"container itself"
	tlsRemedy = "begin upstream with https:// or http://, whichever the server speaks, use the host name of its " +
		"certificate, and set upstream-cert if it requires one of the gateway"
	keyRemedy = "let it answer 401 to a key that it does not know; if people with a valid key cannot connect, allow " +
		"the address of the gateway there, or " + pathRemedy
)

// judgeError judges a request without a response. It keeps only the texts of errors from before the
// request was sent, because later ones can quote the answer.
func judgeError(err error) Result {
	reason := outbound.Reason(err)
	var connection *net.OpError
	var proxy outbound.Problem
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return Mistake(reason.Error(), "set upstream-ca to a PEM file with the certificate of its authority")
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return Mistake(reason.Error(), tlsRemedy)
	case errors.Is(err, http.ErrSchemeMismatch):
		return Mistake("it does not speak TLS", tlsRemedy)
	case errors.As(err, &connection) && connection.Op == "remote error": // an alert of TLS
		return Mistake("it ended the TLS connection: "+connection.Err.Error(), tlsRemedy)
	case errors.As(err, &connection) && connection.Op == "proxyconnect", errors.As(err, &proxy):
		return Mistake(cmp.Or(string(proxy), "the proxy cannot be reached"),
			"check upstream-proxy, and whether the proxy allows this server")
	case errors.Is(reason, outbound.ErrNotInTime), errors.Is(reason, outbound.ErrBroken):
		return Result{State: Down, Cause: reason.Error(), Remedy: serverRemedy}
	}
	return Result{State: Down, Cause: reason.Error(), Remedy: addressRemedy}
}
