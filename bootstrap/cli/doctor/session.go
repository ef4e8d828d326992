package doctor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	eventStream         = "text/event-stream"
	lastSessionProtocol = "2025-11-25" // the last revision with sessions
)

// bearer is the transport of the SDK's client. It adds the token and limits
// the body.
type bearer struct {
	token string
	wire  *wire
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.token)
	response, err := b.wire.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := gatewayFailure(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxBody), response.Body}
	return response, nil
}

// tools opens a session with the client of the official SDK and lists the tools.
func (e *examination) tools(ctx context.Context) checkResult {
	ctx, cancel := context.WithTimeout(ctx, 3*e.Limit) // a session takes several requests
	defer cancel()
	names, version, err := e.listTools(ctx)
	var cause upstreamError
	switch {
	case errors.As(err, &cause):
		return fail(mendUpstream, "%s", cause)
	case errors.Is(err, context.DeadlineExceeded):
		return fail("Find out why the MCP server, or the one behind the gateway, is slow; --timeout makes doctor "+
			"wait longer.", "no response within %s", 3*e.Limit)
	case err != nil:
		return fail("See the log of the MCP server: its bearer check must accept tokens whose audience is the "+
			"resource, and the proxy must pass "+
			"the Authorization, Mcp-Session-Id and MCP-Protocol-Version headers. A gateway returns 401 after the "+
			"site has revoked "+
			"the person's own token.", "%v", err)
	}
	return ok("%d tools, revision %s", names, version)
}

func (e *examination) listTools(ctx context.Context) (count int, version string, err error) {
	session, err := e.openSession(ctx, nil)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = session.Close() }()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return 0, "", fmt.Errorf("listing the tools: %w", err)
	}
	return len(tools.Tools), session.InitializeResult().ProtocolVersion, nil
}

func (e *examination) openSession(ctx context.Context, o *sdk.ClientSessionOptions) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "pasteport-doctor", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: e.Endpoint.String(), DisableStandaloneSSE: true, MaxRetries: -1,
		HTTPClient: &http.Client{
			Transport:     bearer{e.flow.access, e.wire},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, o)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	return session, nil
}

// stream checks that no proxy buffers a stream. A stream of the older transport sends its first
// event immediately. Without one, the stream of a session, or of a server without sessions, only
// has to open.
func (e *examination) stream(ctx context.Context) checkResult {
	ctx, cancel := context.WithTimeout(ctx, 3*e.Limit) // a session takes several requests
	defer cancel()
	noEvent := false
	legacy := e.openStream(ctx, func(body io.Reader) (string, error) {
		event, err := firstEvent(body)
		noEvent = err != nil
		return fmt.Sprintf("the first event, %q, arrived", event), err
	})
	if legacy.status != Skipped && !noEvent {
		return legacy
	}
	session, err := e.openSession(ctx, &sdk.ClientSessionOptions{ProtocolVersion: lastSessionProtocol})
	switch {
	case err != nil && noEvent:
		return legacy
	case err != nil:
		return skip("because no session can be opened: %v", err)
	}
	defer func() { _ = session.Close() }()
	switch {
	case session.ID() != "" && noEvent:
		return legacy
	case noEvent:
		return ok("the stream of a server without sessions opened; doctor waited for no event")
	case session.ID() == "":
		return skip("because the server supports neither HTTP with SSE nor sessions")
	}
	return e.openStream(ctx, func(io.Reader) (string, error) {
		return "the stream of a session opened", nil
	},
		"Mcp-Session-Id", session.ID(), "MCP-Protocol-Version", session.InitializeResult().ProtocolVersion)
}

// openStream opens a stream and measures the time until confirm returns.
func (e *examination) openStream(ctx context.Context, confirm func(io.Reader) (string, error),
	header ...string) checkResult {
	const mend = "Turn buffering off for the MCP endpoint: proxy_buffering off and proxy_http_version 1.1 with " +
		"nginx, no compression and no cache."
	ctx, cancel := context.WithTimeout(ctx, e.Limit)
	defer cancel()
	began := time.Now()
	response, err := e.wire.open(ctx, request{method: http.MethodGet, url: e.Endpoint.String(), header: append([]string{
		"Accept", eventStream, "Authorization", "Bearer " + e.flow.access,
	}, header...)})
	if err != nil {
		return fail(mend, "%v: no event arrives", err)
	}
	defer response.Body.Close()
	a := answer{
		method: http.MethodGet,
		url:    e.Endpoint.String(),
		status: response.StatusCode,
		header: response.Header,
	}
	if err := gatewayFailure(response); err != nil {
		return fail(mendUpstream, "%v", err)
	}
	switch {
	case a.status == http.StatusUnauthorized || a.redirects() || a.status >= http.StatusInternalServerError:
		return fail("Let the proxy pass GET of the MCP endpoint with its headers.", "%s", a)
	case a.status != http.StatusOK:
		return skip("because the server has no such stream: %s", a)
	case a.mediaType() != eventStream:
		return fail("Return text/event-stream for GET, or 405.", "%s as %q", a, a.header.Get("Content-Type"))
	}
	seen, err := confirm(response.Body)
	if err != nil {
		return fail(mend, "the stream is open, but no event arrives: %v", e.wire.explainTimeout(err))
	}
	return ok("%s after %s", seen, time.Since(began).Round(100*time.Microsecond))
}

// firstEvent reads the whole first event and returns its name.
func firstEvent(body io.Reader) (name string, err error) {
	lines := bufio.NewScanner(io.LimitReader(body, maxBody))
	for lines.Scan() {
		if event, found := strings.CutPrefix(lines.Text(), "event:"); found {
			name = strings.TrimSpace(event)
		}
		if lines.Text() == "" && name != "" {
			return name, nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("reading the stream: %w", err)
	}
	return "", io.ErrUnexpectedEOF
}

func (e *examination) revoke(ctx context.Context) checkResult {
	const mend = "Support revocation (RFC 7009): publish revocation_endpoint in the metadata, return 200, and let " +
		"the proxy pass POST to it."
	endpoint := e.server.text("revocation_endpoint")
	if endpoint == "" {
		return skip("because there is no revocation_endpoint; the access token of this check stays valid until it " +
			"expires")
	}
	for _, token := range []string{e.flow.access, e.flow.refresh} {
		if token == "" {
			continue
		}
		if a := e.wire.post(ctx, endpoint,
			url.Values{"token": {token}, "client_id": {e.Client.ID}}); a.status != http.StatusOK {
			return fail(mend, "%s", a)
		}
	}
	return ok("200")
}

func (e *examination) revoked(ctx context.Context) checkResult {
	a := e.call(ctx, "Authorization", "Bearer "+e.flow.access)
	switch {
	case a.err != nil:
		return fail("See the log of the MCP server.", "%s", a)
	case a.status != http.StatusUnauthorized:
		return fail("Make the MCP server check each token with the authorization server, or issue short-lived access "+
			"tokens.", "%s to the access token", a)
	}
	return ok("401")
}

const (
	gatewayCode   = -32000
	gatewayPrefix = "The MCP server behind this gateway "
)

const mendUpstream = "Check the MCP server behind the gateway, not the network between: it must run at the exact " +
	"address in upstream, respond " +
	"there without a redirect, accept the host name of the request (else set upstream-host) and the gateway's " +
	"credential, and " +
	"start its responses within upstream-timeout. With host-token, it must accept the same tokens as the verifier. " +
	"The gateway's log has the cause."

// upstreamError is the error of Pasteport's gateway about the MCP server behind it.
type upstreamError string

func (e upstreamError) Error() string { return string(e) }

// gatewayFailure returns an error if the gateway responded in place of the server behind it. The
// body stays readable.
func gatewayFailure(response *http.Response) error {
	if response.StatusCode < http.StatusInternalServerError {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return fmt.Errorf("reading an error: %w", err)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), response.Body}
	var message struct {
		Error struct {
			Code    int
			Message string
		}
	}
	if json.Unmarshal(body, &message) != nil || message.Error.Code != gatewayCode ||
		!strings.HasPrefix(message.Error.Message, gatewayPrefix) {
		return nil
	}
	return upstreamError(message.Error.Message)
}
