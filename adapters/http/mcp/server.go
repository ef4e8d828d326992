package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/wellknown"
	"github.com/pasteport/pasteport/domain/oauth"
)

const wellKnown = "/.well-known/oauth-protected-resource"

// Authorization is what the guard needs of the OAuth layer.
type Authorization interface {
	// Authenticate refuses with oauth.InvalidToken; any other error is an outage.
	Authenticate(ctx context.Context, bearer string, resource oauth.Resource) (oauth.Caller, error)
}

// ToolPolicy tells whether the caller may know and call a tool.
type ToolPolicy func(caller oauth.Caller, tool string) bool

// Options is how a server is protected. Every zero value means the default in its comment.
type Options struct {
	Issuer        string               // the authorization server's URL
	Resource      oauth.Resource       // the URL of this endpoint; its path is where Mount puts it
	ResourceName  string               // shown to people; left out of the metadata
	Scopes        oauth.ScopeCatalogue // what can be asked for; its defaults are named in challenges
	Authorization Authorization

	AllowedOrigins []string // browser origins besides those of Issuer and Resource
	AllowedHosts   []string // further names of a server on this computer

	ToolPolicy ToolPolicy                     // every tool for everybody
	ToolScopes func(tool string) oauth.Scopes // scopes that calling a tool needs; the catalogue's defaults

	MaxSessions         int           // 10 000
	MaxSessionsPerGrant int           // 100, so that one client cannot keep everybody else out
	MaxBody             int64         // in bytes; 1 MiB
	SessionTimeout      time.Duration // without a POST; 1 hour

	Now    func() time.Time // time.Now
	Logger *slog.Logger     // silent
}

func (o Options) withDefaults() Options {
	if o.MaxSessions == 0 {
		o.MaxSessions = 10_000
	}
	if o.MaxSessionsPerGrant == 0 {
		o.MaxSessionsPerGrant = 100
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = time.Hour
	}
	if o.ToolScopes == nil {
		o.ToolScopes = func(string) oauth.Scopes { return o.Scopes.Defaults() }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server is one MCP server behind OAuth.
type Server struct {
	options  Options
	path     string // of the resource, "" when it is a whole origin
	policy   policy
	gate     gate
	metadata *wellknown.Document

	mcp       *sdk.Server
	sessions  http.Handler // 2025-03-26 to 2025-11-25
	stateless http.Handler // 2026-07-28 and whatever follows
	legacy    sync.Map     // 2024-11-05: *legacySession by id
	streams   *registry
	challenge challenger
}

// New protects the SDK's server. It adds a receiving middleware to it, so it is called once for each sdk.Server.
func New(server *sdk.Server, o Options) *Server {
	o = o.withDefaults()
	origin, path := splitOrigin(o.Resource.String())
	s := &Server{
		options: o, path: path, mcp: server,
		policy:    policy{catalogue: o.Scopes, allows: o.ToolPolicy, needs: o.ToolScopes},
		gate:      newGate(o),
		metadata:  newMetadata(o),
		challenge: challenger{metadata: origin + wellKnown + path},
	}
	s.streams = newRegistry(s)
	get := func(*http.Request) *sdk.Server { return server }
	s.sessions = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		SessionTimeout: o.SessionTimeout, EventStore: sdk.NewMemoryEventStore(nil), MaxRequestBodyBytes: o.MaxBody,
		DisableLocalhostProtection: true, Logger: o.Logger, // the gate knows the real hosts
	})
	s.stateless = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: o.MaxBody,
		DisableLocalhostProtection: true, Logger: o.Logger,
	})
	server.AddReceivingMiddleware(s.receive)
	return s
}

// Mount registers the endpoint, its message endpoint and its metadata (F6) at the resource's path. Unknown suffixes are 404.
func (s *Server) Mount(e *echo.Echo) {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions}
	endpoint := s.gate.wrap(s.guard(s.admit(s.dispatch)))
	e.Match(methods, orRoot(s.path), echo.WrapHandler(endpoint))
	message := s.gate.wrap(s.guard(s.admit(s.deliver)))
	e.Match([]string{http.MethodPost, http.MethodOptions}, s.path+messagePath, echo.WrapHandler(message))

	s.metadata.Mount(e, wellKnown)
	e.RouteNotFound(wellKnown+"/*", echo.NotFoundHandler)
	if s.path == "" {
		return
	}
	s.metadata.Mount(e, wellKnown+s.path)
	e.RouteNotFound(s.path+"/*", echo.NotFoundHandler)
}

// CloseGrant ends every stream and session of a grant at once (G16).
func (s *Server) CloseGrant(grant string) { s.streams.closeGrant(grant) }

// Drain ends every stream and session and admits no new ones, so that http.Server.Shutdown returns. It is meant for
// http.Server.RegisterOnShutdown.
func (s *Server) Drain() { s.streams.drain() }

// splitOrigin cuts a configured URL before its path.
func splitOrigin(uri string) (origin, path string) {
	scheme, rest, _ := strings.Cut(uri, "://")
	authority, path, found := strings.Cut(rest, "/")
	if found {
		path = "/" + path
	}
	return scheme + "://" + authority, strings.TrimSuffix(path, "/")
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}
