package bootstrap

import (
	"net/http"

	"github.com/pasteport/pasteport/adapters/http/mcp"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Handler is an MCP server of this process that is none of the official SDK. It is told who is calling and sees no token.
type Handler func(w http.ResponseWriter, r *http.Request, caller oauth.Caller)

// Guard protects such a server; it needs WithOAuth. WithToolPolicy has no effect on it, because only the handler knows its tools.
func Guard(serve Handler, options ...MCPOption) *MCPServer {
	m := new(MCPServer)
	for _, option := range options {
		option(m)
	}
	if serve != nil { // as with MCP, Register says that there is none
		m.mounted = mcp.NewGateway(inProcess(serve), m.protection())
	}
	return m
}

// inProcess is an upstream that is no further away than a call.
type inProcess Handler

// Forward implements mcp.Upstream.
func (p inProcess) Forward(w http.ResponseWriter, r *http.Request, _ []byte, caller oauth.Caller, _ oauth.HostToken) error {
	p(w, r, caller)
	return nil
}

// Deliver implements mcp.Upstream.
func (p inProcess) Deliver(w http.ResponseWriter, r *http.Request, body []byte, caller oauth.Caller, host oauth.HostToken) error {
	return p.Forward(w, r, body, caller, host)
}
