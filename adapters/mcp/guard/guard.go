// Package guard protects an MCP server with OAuth access tokens (RFC 6750, RFC 9728). The server is
// a Backend: package sdkserver has one of the official Go SDK, and package gateway one elsewhere.
//
// A request passes these steps in order:
//
//	gate     checks Host and Origin, and sets CORS headers
//	identify checks the bearer token, sets the caller and removes the token from the headers
//	admit    reads the body (package message) and checks the scopes that it needs
//	Backend  answers
//
// The response is a Writer of package stream, which ends with the token or the grant.
package guard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/internal/wellknown"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/uri"
)

const (
	wellKnown   = "/.well-known/oauth-protected-resource"
	messagePath = "/message"
)

// Backend is the MCP server behind a Guard. Its requests have passed all steps before.
type Backend interface {
	// Read reads the body of a POST. It sets Refused in one that the server must not get.
	Read(out *stream.Writer, r *http.Request, text []byte) message.Body
	// Serve answers a request to the endpoint. The body of a refused message is a JSON-RPC error
	// for a request of the server, and the client must not get the response to it.
	Serve(out *stream.Writer, r *http.Request, b message.Body)
}

// LegacyBackend is a Backend that also supports HTTP+SSE (2024-11-05).
type LegacyBackend interface {
	// Deliver is Serve for a POST to the message endpoint.
	Deliver(out *stream.Writer, r *http.Request, b message.Body)
}

// Guard protects the MCP server of one resource.
type Guard struct {
	options  Options
	path     string // of the resource, "" for one without a path
	gate     gate
	metadata *wellknown.Document

	responses   *stream.Registry
	metadataURL string  // in challenges
	missing     refusal // for a request without a token
	invalid     refusal // for an invalid token
}

// New returns a Guard of a Backend whose responses and sessions are in the registry. The options
// have their defaults.
func New(o Options, responses *stream.Registry) *Guard {
	if o.ClientLabel == nil {
		o.ClientLabel = oauth.ClientID.String
	}
	origin, path := uri.SplitOrigin(o.Resource.String())
	return &Guard{
		options:     o,
		path:        path,
		gate:        newGate(o),
		metadata:    newMetadata(o),
		responses:   responses,
		metadataURL: origin + wellKnown + path,
		missing:     missingToken.with(o.Scopes.Defaults()),
		invalid:     invalidToken.with(o.Scopes.Defaults()),
	}
}

// MessagePath returns the path for the messages of HTTP+SSE to a resource.
func MessagePath(resource oauth.Resource) string {
	_, path := uri.SplitOrigin(resource.String())
	return path + messagePath
}

// Mount registers the endpoint of the server, a message endpoint and its metadata at the path of
// the resource. It answers 404 to longer paths, except for a trailing slash.
func (g *Guard) Mount(e *echo.Echo, to Backend) {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions}
	inHeader := func(r *http.Request) string { return r.Header.Get(message.SessionHeader) }
	endpoint := g.protect(to, to.Serve, inHeader)
	e.Match(methods, cmp.Or(g.path, "/"), endpoint)
	if legacy, ok := to.(LegacyBackend); ok {
		deliver := g.protect(to, legacy.Deliver, InQuery)
		e.Match([]string{http.MethodPost, http.MethodOptions}, g.path+messagePath, deliver)
	}

	g.metadata.Mount(e, wellKnown+g.path, g.options.Follow)
	e.RouteNotFound(wellKnown+"/*", echo.NotFoundHandler)
	if g.path == "" {
		return
	}
	if !g.options.NoRootMetadata {
		g.metadata.Mount(e, wellKnown, g.options.Follow)
	}
	// People type both addresses. The metadata of the one with a slash names the resource with it,
	// because clients compare it with the URL that they were given (RFC 9728 §3.3). Tokens are for
	// the resource without it.
	withSlash := g.options
	withSlash.Resource = oauth.NewResource(withSlash.Resource.String() + "/")
	newMetadata(withSlash).Mount(e, wellKnown+g.path+"/", withSlash.Follow)
	e.Match(methods, g.path+"/", g.withSlashInChallenge(endpoint))
	e.RouteNotFound(g.path+"/*", echo.NotFoundHandler)
}

// CloseGrant ends the responses and sessions of a grant.
func (g *Guard) CloseGrant(grant string) {
	g.CloseEnded(oauth.Ended{Grants: map[string]oauth.EndedGrant{grant: {}}})
}

// CloseEnded ends the responses and sessions of grants and tokens that any process has ended. It
// may be repeated.
func (g *Guard) CloseEnded(ended oauth.Ended) { g.responses.End(ended) }

// Idle reports whether all responses and sessions have ended.
func (g *Guard) Idle() bool { return g.responses.Idle() }

// Open returns the numbers of open streams and sessions.
func (g *Guard) Open() (streams, sessions int) { return g.responses.Count() }

// Drain ends all streams and sessions and admits no new ones. Pass it to
// http.Server.RegisterOnShutdown, because Shutdown waits for streams.
func (g *Guard) Drain() { g.responses.Drain() }

// ResourceMetadata is the metadata document of RFC 9728. It depends only on the configuration.
type ResourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name,omitempty"`
	Documentation        string   `json:"resource_documentation,omitempty"`
	Policy               string   `json:"resource_policy_uri,omitempty"`
	Terms                string   `json:"resource_tos_uri,omitempty"`
}

// NewResourceMetadata returns the document of a resource, for its issuer, scopes, name and links.
func NewResourceMetadata(o Options) ResourceMetadata {
	return ResourceMetadata{
		Resource:             o.Resource.String(),
		AuthorizationServers: []string{o.Issuer},
		ScopesSupported:      o.Scopes.Defaults().Values(), // some clients request all that they see here
		BearerMethods:        []string{"header"},
		ResourceName:         o.ResourceName,
		Documentation:        o.Links.URL(oauth.ResourceDocumentation),
		Policy:               o.Links.URL(oauth.ResourcePolicy),
		Terms:                o.Links.URL(oauth.ResourceTerms),
	}
}

func newMetadata(o Options) *wellknown.Document {
	return wellknown.New(attempt.ResourceMetadata, NewResourceMetadata(o))
}

// withSlashInChallenge makes challenges name the metadata for the URL with a trailing slash.
func (g *Guard) withSlashInChallenge(next echo.HandlerFunc) echo.HandlerFunc {
	const name = "WWW-Authenticate"
	return func(c echo.Context) error {
		header := c.Response().Header()
		c.Response().Before(func() {
			if challenge := header.Get(name); challenge != "" {
				header.Set(name, strings.Replace(challenge, g.metadataURL+`"`, g.metadataURL+`/"`, 1))
			}
		})
		return next(c)
	}
}

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
