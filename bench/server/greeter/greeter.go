// Package greeter has the one tool that both sides of the comparison with the SDK call.
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

// New is a server of that tool.
func New() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets somebody"},
		func(_ context.Context, _ *mcp.CallToolRequest, to greeting) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello " + to.Name}}}, nil, nil
		})
	return server
}

// Handler is the SDK's own ones, with the settings that Pasteport has, and its own store of events.
func Handler() http.Handler {
	greeter := New()
	get := func(*http.Request) *mcp.Server { return greeter }
	stateful := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		EventStore: mcp.NewMemoryEventStore(nil), SessionTimeout: time.Hour, MaxRequestBodyBytes: 1 << 20, DisableLocalhostProtection: true,
	})
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: 1 << 20, DisableLocalhostProtection: true,
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
