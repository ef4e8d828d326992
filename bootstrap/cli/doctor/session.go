package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	lastSessionProtocol = "2025-11-25" // the last revision with sessions
	sessionLimits       = 3            // of requests, because a session takes several
)

// tools opens a session with the client of the official SDK and lists the tools.
func (e *examination) tools(ctx context.Context) finding {
	ctx, cancel := context.WithTimeout(ctx, sessionLimits*e.limit)
	defer cancel()
	count, version, err := e.listTools(ctx)
	var cause upstreamError
	switch {
	case errors.As(err, &cause):
		return fail(mendUpstream, "%s", cause)
	case errors.Is(err, context.DeadlineExceeded):
		return fail("Find out why the MCP server, or the one behind the gateway, is slow; --timeout makes doctor "+
			"wait longer.", "no response within %s", sessionLimits*e.limit)
	case err != nil:
		return fail("See the log of the MCP server. The proxy must pass the Authorization, Mcp-Session-Id and "+
			"MCP-Protocol-Version headers.", "%v", err)
	}
	return ok("tools: %d, revision %s", count, version)
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
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: e.flow.access})
	client := sdk.NewClient(&sdk.Implementation{Name: "pasteport-doctor", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint:             e.endpoint.String(),
		DisableStandaloneSSE: true,
		MaxRetries:           -1,
		HTTPClient: &http.Client{
			Transport:     &oauth2.Transport{Base: e.wire, Source: token},
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
func (e *examination) stream(ctx context.Context) finding {
	ctx, cancel := context.WithTimeout(ctx, sessionLimits*e.limit)
	defer cancel()
	silent := false
	older := e.openStream(ctx, func(stream io.Reader) (string, error) {
		event, err := firstEvent(stream)
		silent = err != nil
		return fmt.Sprintf("the first event, %q, arrived", event), err
	})
	if older.Status != skipped && !silent {
		return older
	}
	session, err := e.openSession(ctx, &sdk.ClientSessionOptions{ProtocolVersion: lastSessionProtocol})
	if err == nil {
		defer func() { _ = session.Close() }()
	}
	switch {
	case silent && (err != nil || session.ID() != ""):
		return older
	case silent:
		return ok("the stream of a server without sessions opened; doctor waited for no event")
	case err != nil:
		return skip("because no session can be opened: %v", err)
	case session.ID() == "":
		return skip("because the server supports neither HTTP with SSE nor sessions")
	}
	return e.openStream(ctx, func(io.Reader) (string, error) { return "the stream of a session opened", nil },
		"Mcp-Session-Id", session.ID(), "MCP-Protocol-Version", session.InitializeResult().ProtocolVersion)
}

// openStream opens a stream and measures the time until confirm returns.
func (e *examination) openStream(ctx context.Context, confirm func(io.Reader) (string, error),
	header ...string) finding {
	const mend = "Turn buffering off for the MCP endpoint: proxy_buffering off and proxy_http_version 1.1 with " +
		"nginx, no compression and no cache."
	ctx, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	began := time.Now()
	response, err := e.wire.open(ctx, http.MethodGet, e.endpoint.String(), "",
		append([]string{"Accept", eventStream, "Authorization", "Bearer " + e.flow.access}, header...)...)
	var cause upstreamError
	switch {
	case errors.As(err, &cause):
		return fail(mendUpstream, "%s", cause)
	case err != nil:
		return fail(mend, "%v: no event arrives", err)
	}
	defer response.Body.Close()
	a := answerOf(response)
	switch {
	case a.status == http.StatusUnauthorized || a.redirects() || a.status >= http.StatusInternalServerError,
		a.status == http.StatusOK && mediaTypeOf(a.header) != eventStream:
		return fail("Let the proxy pass GET of the MCP endpoint with its headers.", "%s as %q", a,
			a.header.Get("Content-Type"))
	case a.status != http.StatusOK:
		return skip("because the server has no such stream: %s", a)
	}
	seen, err := confirm(response.Body)
	if err != nil {
		return fail(mend, "the stream is open, but no event arrives: %v", e.wire.explainTimeout(err))
	}
	return ok("%s after %s", seen, time.Since(began).Round(100*time.Microsecond))
}

// firstEvent reads the stream until an event with a name is complete, and returns the name.
func firstEvent(stream io.Reader) (name string, err error) {
	events := message.Events{Emit: func(event []byte, _ error) error {
		if _, kind := message.ParseEvent(event); name == "" {
			name = kind
		}
		return nil
	}}
	for piece := make([]byte, 512); name == ""; {
		n, err := stream.Read(piece)
		_ = events.Read(piece[:n]) // Emit never fails
		if err != nil && name == "" {
			return "", fmt.Errorf("reading the stream: %w", err)
		}
	}
	return name, nil
}

const mendUpstream = "Check the MCP server behind the gateway, not the network between: it must run at the exact " +
	"address in upstream, respond there without a redirect, accept the host name of the request (else set " +
	"upstream-host) and the gateway's credential, and start its responses within upstream-timeout. With " +
	"host-token, it must accept the same tokens as the verifier. The gateway's log has the cause."
