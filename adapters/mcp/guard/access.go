package guard

import (
	"bytes"
	"encoding/json"
	"fmt"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Policy reports whether the caller may see and use a tool, a prompt or a resource. For a server
// elsewhere it has to deny other spellings of a name that it denies.
type Policy func(caller oauth.Caller, name string) bool

// Permits reports whether the caller may see and use a name. A nil Policy permits all.
func (p Policy) Permits(caller oauth.Caller, name string) bool { return p == nil || p(caller, name) }

// MissingScopes reports whether the caller lacks a scope for the tools, and returns all scopes that
// the client should request. Of several calls each counts with the arguments of all, because an MCP
// server may take them in another way than we do.
func (g *Guard) MissingScopes(caller oauth.Caller, tools []string, arguments ...[]byte) (oauth.Scopes, bool) {
	needed := g.neededScopes(caller, tools, arguments)
	// The first check is usually enough, and Expand costs more.
	if caller.Scopes.Contains(needed) || g.options.Scopes.Expand(caller.Scopes).Contains(needed) {
		return oauth.Scopes{}, false
	}
	return g.withDefaults(needed), true
}

// neededScopes returns the scopes that calls of the tools need, each with any of the arguments. It
// counts the default scopes instead of none, so that a forgotten tool is not open to every token.
func (g *Guard) neededScopes(caller oauth.Caller, tools []string, arguments [][]byte) (needed oauth.Scopes) {
	scopesOf := func(tool string, _ map[string]any) oauth.Scopes { return g.options.ToolScopes(tool) }
	decoded := make([]map[string]any, 1)
	if g.options.CallScopes != nil {
		scopesOf, decoded = g.options.CallScopes, make([]map[string]any, max(1, len(arguments)))
		for i, raw := range arguments {
			exact := json.NewDecoder(bytes.NewReader(raw))
			exact.UseNumber()
			_ = exact.Decode(&decoded[i]) // what is not an object has no arguments
		}
	}
	for _, tool := range tools {
		if !g.options.Tools.Permits(caller, tool) {
			continue
		}
		for _, one := range decoded {
			scopes := scopesOf(tool, one)
			if scopes.Empty() {
				scopes = g.options.Scopes.Defaults()
			}
			needed = needed.With(scopes.Values()...)
		}
	}
	return needed
}

// withDefaults returns what a client should request that needs these scopes.
func (g *Guard) withDefaults(needed oauth.Scopes) oauth.Scopes {
	return needed.With(g.options.Scopes.Defaults().Values()...).Without(oauth.OfflineAccess)
}

// FindUnknown returns the error of the SDK for the first name that does not exist for the caller,
// nil for none. What a Policy denies is unknown to the caller. The code for resources depends on
// the revision of MCP.
func (g *Guard) FindUnknown(caller oauth.Caller, names message.Names, codeOfResource int64) *rpc.Error {
	for _, name := range names.Tools {
		if !g.options.Tools.Permits(caller, name) {
			return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
		}
	}
	for _, name := range names.Prompts {
		if !g.options.Prompts.Permits(caller, name) {
			return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", name)}
		}
	}
	for _, uri := range names.Resources {
		if !g.options.Resources.Permits(caller, uri) {
			data, _ := json.Marshal(map[string]string{"uri": uri}) // strings always encode
			return &rpc.Error{Code: codeOfResource, Message: "Resource not found", Data: data}
		}
	}
	return nil
}
