// Package greeter is the MCP server with one tool that all servers of tools/call serve.
package greeter

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type greeting struct {
	Name string `json:"name"`
}

// New returns an MCP server with the tool.
func New() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets somebody"},
		func(_ context.Context, _ *mcp.CallToolRequest, to greeting) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello " + to.Name}}}, nil, nil
		})
	return server
}

// Handler returns the SDK's own handlers with Pasteport's settings and the SDK's event store.
func Handler() http.Handler {
	greeter := New()
	get := func(*http.Request) *mcp.Server { return greeter }
	stateful := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		EventStore:                 mcp.NewMemoryEventStore(nil),
		SessionTimeout:             time.Hour,
		MaxRequestBodyBytes:        1 << 20,
		DisableLocalhostProtection: true,
	})
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Stateless:                    true,
		PropagateRequestCancellation: true,
		MaxRequestBodyBytes:          1 << 20,
		DisableLocalhostProtection:   true,
	})
	legacy := mcp.NewSSEHandler(get, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28":
			stateless.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.Header.Get("Mcp-Session-Id") == "", r.URL.Query().Has("sessionid"):
			legacy.ServeHTTP(w, r)
		default:
			stateful.ServeHTTP(w, r)
		}
	})
}
