package bootstrap

import (
	"fmt"
	"slices"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/mcp/replica"
	"github.com/pasteport/pasteport/domain/oauth"
)

// MCPOption says how an MCP server is protected.
type MCPOption func(*MCPServer)

// WithOAuth attaches the authorization server; Register needs it.
func WithOAuth(authz *OAuthServer) MCPOption { return func(m *MCPServer) { m.authz = authz } }

// WithResource says which of the servers of the Config this one is, by its URL; without it, it is the first (U1).
func WithResource(uri string) MCPOption { return func(m *MCPServer) { m.resource = uri } }

// WithToolPolicy decides which tools a caller may know and call, usually by their roles.
func WithToolPolicy(allows func(caller oauth.Caller, tool string) bool) MCPOption {
	return func(m *MCPServer) { m.options.ToolPolicy = allows }
}

// WithToolScopes names the scopes that calling a tool needs; a client without them is told to ask for them (G10). NewGateway and Guard
// also look up a name without the space at its ends (U11); FoldToolName is for servers that ignore case.
func WithToolScopes(needs func(tool string) oauth.Scopes) MCPOption {
	return func(m *MCPServer) { m.options.ToolScopes = needs }
}

// FoldToolName returns what the spellings of a tool's name have in common that an MCP server may take for that tool: with space at the
// ends, in another case, or in wide letters. In front of a server that does, compare folded names in WithToolScopes.
func FoldToolName(name string) string { return jsonrpc.FoldToolName(name) }

// Bus carries messages between the replicas of a service; nats.Open makes one.
type Bus = replica.Bus

// WithBus lets every replica of a service answer every request: one for a session that another replica holds goes there and back over
// the bus (R1). All replicas need the same server secret, and a bus each. Inside a session, tools then see of the headers of a request
// only Accept, Accept-Language, Content-Type, Last-Event-Id, Traceparent, Tracestate, User-Agent, X-Request-Id and those of MCP, on
// every replica. A gateway needs no bus: its sessions are the upstream's.
func WithBus(bus Bus) MCPOption { return func(m *MCPServer) { m.options.Bus = bus } }

// WithAllowedOrigins lets pages of other origins call the MCP endpoint from a browser, each named as scheme://host or scheme://host:port;
// Register reports one that no browser sends.
func WithAllowedOrigins(origins ...string) MCPOption {
	return func(m *MCPServer) { m.options.AllowedOrigins = origins }
}

// WithAllowedHosts accepts other names in the Host header of a server on this computer than its own; a name without a port holds with
// any. A public server answers under every name.
func WithAllowedHosts(hosts ...string) MCPOption {
	return func(m *MCPServer) { m.options.AllowedHosts = hosts }
}

// WithMaxRequestBody limits a message of a client to that many bytes; without it, or with 0, it may have 4 MiB. All bodies under way, of every MCP
// server of the OAuth server, together take at most an eighth of the memory that the process may use, one subject a quarter of that.
func WithMaxRequestBody(bytes int64) MCPOption {
	return func(m *MCPServer) { m.options.MaxBody = bytes }
}

// place is this server's among the resources, -1 when it is none of them.
func (m *MCPServer) place() int {
	if m.resource == "" {
		return 0
	}
	return slices.IndexFunc(m.authz.Resources(), func(one oauth.ProtectedResource) bool { return one.Resource.String() == m.resource })
}

func (m *MCPServer) errUnknownResource() error {
	var known []oauth.Resource
	for _, one := range m.authz.Resources() {
		known = append(known, one.Resource)
	}
	return fmt.Errorf("registering the MCP server: WithResource names %q, which is no server of the oauth.Config: choose from %v", m.resource, known)
}
