package bootstrap

import (
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Handler is an MCP server in this process that does not use the official SDK. It receives the
// caller and no token.
type Handler func(w http.ResponseWriter, r *http.Request, caller oauth.Caller)

// Guard protects a Handler; Register needs WithOAuth.
func Guard(serve Handler, options ...MCPOption) *MCPServer {
	m := newMCPServer(options)
	if serve != nil { // Register reports a nil handler
		m.mounted = gateway.New(hostHandler(serve), gateway.Options{Options: m.protection()})
	}
	return m
}

// hostHandler is a gateway.Upstream that calls a Handler.
type hostHandler Handler

// Forward implements gateway.Upstream.
func (p hostHandler) Forward(w http.ResponseWriter, r *http.Request, b message.Body, caller oauth.Caller,
	_ oauth.HostToken) error {
	if r.Method == http.MethodPost {
		b.SetOn(r)
	}
	p(w, r, caller)
	return nil
}
