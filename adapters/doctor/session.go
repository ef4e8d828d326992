package doctor

import (
	"bufio"
	"context"
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
	eventStream  = "text/event-stream"
	withSessions = "2025-11-25" // the last revision that has any
)

// bearer is the SDK's way to the endpoint: with the token, bounded, and to nowhere else.
type bearer struct {
	token string
	wire  *wire
}

// RoundTrip sends the request with the token.
func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.token)
	response, err := b.wire.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := spokenFor(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxBody), response.Body}
	return response, nil
}

// tools lets the official SDK's client open a session and list the tools.
func (e *examination) tools(ctx context.Context) verdict {
	ctx, cancel := context.WithTimeout(ctx, 3*e.Limit) // a session takes several requests
	defer cancel()
	names, version, err := e.listTools(ctx)
	var cause behind
	switch {
	case errors.As(err, &cause):
		return fail(mendBehind, "%s", cause)
	case errors.Is(err, context.DeadlineExceeded):
		return fail("See why the MCP server, or the one behind the gateway, takes so long; let doctor wait longer with --timeout.", "no answer within %s", 3*e.Limit)
	case err != nil:
		return fail("See the log of the MCP server: its bearer check must accept tokens whose audience is the resource, and the proxy must pass "+
			"the Authorization, Mcp-Session-Id and MCP-Protocol-Version headers. A gateway answers 401 when the person's own token has been revoked at "+
			"the site.", "%v", err)
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

// stream opens a stream and sees whether a proxy holds it back: of the older transport, whose first event comes at once, else of a
// session, or of a server without sessions, which open at once and may have no event to show.
func (e *examination) stream(ctx context.Context) verdict {
	ctx, cancel := context.WithTimeout(ctx, 3*e.Limit) // a session takes several requests
	defer cancel()
	silent := false
	older := e.streamed(ctx, func(body io.Reader) (string, error) {
		event, err := firstEvent(body)
		silent = err != nil
		return fmt.Sprintf("the first event, %q, came", event), err
	})
	if older.status != Skipped && !silent {
		return older
	}
	session, err := e.openSession(ctx, &sdk.ClientSessionOptions{ProtocolVersion: withSessions})
	switch {
	case err != nil && silent:
		return older
	case err != nil:
		return skip("because no session can be opened: %v", err)
	}
	defer func() { _ = session.Close() }()
	switch {
	case session.ID() != "" && silent:
		return older
	case silent:
		return ok("the stream of a server without sessions opened, of which no event was awaited")
	case session.ID() == "":
		return skip("because the server has neither the older transport nor sessions")
	}
	return e.streamed(ctx, func(io.Reader) (string, error) {
		return "the stream of a session opened, of which no event was awaited,", nil
	},
		"Mcp-Session-Id", session.ID(), "MCP-Protocol-Version", session.InitializeResult().ProtocolVersion)
}

// streamed measures how long it takes until the stream shows that it is one.
func (e *examination) streamed(ctx context.Context, sign func(io.Reader) (string, error), header ...string) verdict {
	const mend = "Turn buffering off for the MCP endpoint: proxy_buffering off and proxy_http_version 1.1 with nginx, no compression and no cache."
	ctx, cancel := context.WithTimeout(ctx, e.Limit)
	defer cancel()
	began := time.Now()
	response, err := e.wire.open(ctx, question{method: http.MethodGet, url: e.Endpoint.String(), header: append([]string{
		"Accept", eventStream, "Authorization", "Bearer " + e.flow.access,
	}, header...)})
	if err != nil {
		return fail(mend, "%v: no event arrives", err)
	}
	defer response.Body.Close()
	a := answer{method: http.MethodGet, url: e.Endpoint.String(), status: response.StatusCode, header: response.Header}
	if err := spokenFor(response); err != nil {
		return fail(mendBehind, "%v", err)
	}
	switch {
	case a.status == http.StatusUnauthorized || a.redirects() || a.status >= http.StatusInternalServerError:
		return fail("Let the proxy pass GET of the MCP endpoint with its headers.", "%s", a)
	case a.status != http.StatusOK:
		return skip("because the server offers no such stream: %s", a)
	case a.mediaType() != eventStream:
		return fail("Answer GET with text/event-stream, or with 405.", "%s as %q", a, a.header.Get("Content-Type"))
	}
	seen, err := sign(response.Body)
	if err != nil {
		return fail(mend, "the stream is open, but no event arrives: %v", e.wire.explained(err))
	}
	return ok("%s after %s", seen, time.Since(began).Round(100*time.Microsecond))
}

// firstEvent reads the name of the first event, to its end.
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

func (e *examination) revoke(ctx context.Context) verdict {
	const mend = "Offer revocation (RFC 7009): name revocation_endpoint in the metadata, answer 200, and let the proxy pass POST to it."
	endpoint := e.server.text("revocation_endpoint")
	if endpoint == "" {
		return skip("because there is no revocation_endpoint; the access token of this examination lives until it expires")
	}
	for _, token := range []string{e.flow.access, e.flow.refresh} {
		if token == "" {
			continue
		}
		a, err := e.wire.post(ctx, endpoint, url.Values{"token": {token}, "client_id": {e.Client.ID}})
		switch {
		case err != nil:
			return fail(mend, "%v", err)
		case a.status != http.StatusOK:
			return fail(mend, "%s", a)
		}
	}
	return ok("200")
}

// giveBack ends what an interrupted examination has been given.
func (e *examination) giveBack(ctx context.Context) {
	if e.flow.access != "" {
		e.revoke(ctx)
	}
}

func (e *examination) revoked(ctx context.Context) verdict {
	a, err := e.call(ctx, "Authorization", "Bearer "+e.flow.access)
	switch {
	case err != nil:
		return fail("See the log of the MCP server.", "%v", err)
	case a.status != http.StatusUnauthorized:
		return fail("Let the MCP server ask the authorization server about each token, or keep access tokens short.", "%s to the access token", a)
	}
	return ok("401")
}
