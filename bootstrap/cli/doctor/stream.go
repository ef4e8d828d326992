package doctor

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const lastSessionProtocol = "2025-11-25" // the last revision with sessions

// stream checks that no proxy holds back a stream. A stream of HTTP+SSE begins with an event. If
// the server has none, the stream of a session only has to open.
func stream(ctx context.Context, p *probe) (seen, fix string) {
	a, seen, fix := p.openStream(ctx)
	if a.Response == nil {
		return seen, fix
	}
	defer a.Body.Close()
	if fix != "" {
		return seen, fix
	}
	if a.StatusCode == http.StatusOK {
		began := time.Now()
		line, err := bufio.NewReader(a.Body).ReadString('\n')
		if err != nil {
			return fmt.Sprintf("the stream is open, but no event arrives: %v", err), bufferFix
		}
		return fmt.Sprintf("%q arrived after %s", line, time.Since(began).Round(time.Millisecond)), ""
	}
	session, err := p.openSession(ctx, &sdk.ClientSessionOptions{ProtocolVersion: lastSessionProtocol})
	if err != nil || session.ID() == "" {
		return "the server has no streams that the client opens", ""
	}
	defer func() { _ = session.Close() }()
	a, seen, fix = p.openStream(ctx, "Mcp-Session-Id", session.ID(), "MCP-Protocol-Version",
		session.InitializeResult().ProtocolVersion)
	if a.Response != nil {
		_ = a.Body.Close()
	}
	return "for a session, " + seen, fix
}

const bufferFix = "Turn buffering off for the MCP endpoint: proxy_buffering off and proxy_http_version 1.1 with " +
	"nginx, no compression and no cache."

func (p *probe) openStream(ctx context.Context, header ...string) (a answer, seen, fix string) {
	a, err := p.open(ctx, http.MethodGet, p.endpoint.String(), "",
		append([]string{"Accept", eventStream, "Authorization", "Bearer " + p.access}, header...)...)
	switch {
	case err != nil && serverFix(err) == upstreamFix:
		return a, err.Error(), upstreamFix
	case err != nil:
		return a, fmt.Sprintf("no event arrives: %v", err), bufferFix
	case a.StatusCode == http.StatusUnauthorized || a.redirects() || a.StatusCode >= http.StatusInternalServerError,
		a.StatusCode == http.StatusOK && a.mediaType() != eventStream:
		fix = "Let the proxy pass GET of the MCP endpoint with its headers."
	}
	return a, fmt.Sprintf("%s as %q", a, a.mediaType()), fix
}
