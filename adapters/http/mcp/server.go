package mcp

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/mcp/eventstore"
	"github.com/pasteport/pasteport/adapters/http/mcp/replica"
	"github.com/pasteport/pasteport/adapters/http/mcp/response"
	"github.com/pasteport/pasteport/adapters/http/wellknown"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	wellKnown  = "/.well-known/oauth-protected-resource"
	keptEvents = 10 << 20 // bytes, of all sessions
)

// Server is one MCP server behind OAuth.
type Server struct {
	options  Options
	path     string // of the resource, "" when it is a whole origin
	policy   policy
	gate     gate
	metadata *wellknown.Document

	endpoint route // what is behind protect
	message  route
	upstream Upstream // of a gateway; everything of the SDK is nil then

	mcp       *sdk.Server
	sessions  http.Handler       // 2025-03-26 to 2025-11-25
	stateless http.Handler       // 2026-07-28 and later
	legacy    sync.Map           // 2024-11-05: *legacySession by id
	replica   string             // this very process, until it ends
	forwarder *replica.Forwarder // nil without a Bus
	open      *response.OpenSet
	challenge challenger
	missing   refusal // of a token
	invalid   refusal
}

// New protects the SDK's server. It adds a receiving middleware to it, so it is called once for each sdk.Server.
func New(server *sdk.Server, o Options) *Server {
	s := newServer(o, nil)
	s.mcp, s.endpoint, s.message = server, settling(s.dispatch), settling(s.deliver)
	get := func(*http.Request) *sdk.Server { return server }
	s.sessions = withTokenInfo(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		SessionTimeout: s.options.SessionTimeout, EventStore: eventstore.New(keptEvents, s.open.RemoveSession), MaxRequestBodyBytes: s.options.MaxBody,
		DisableLocalhostProtection: true, Logger: s.options.Logger, // the gate knows the real hosts
	}))
	s.stateless = withTokenInfo(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: s.options.MaxBody,
		DisableLocalhostProtection: true, Logger: s.options.Logger,
	}))
	server.AddReceivingMiddleware(s.receive)
	if s.options.Bus != nil {
		s.forwarder = replica.New(replica.Options{
			Bus: s.options.Bus, Name: s.replica, Keys: s.options.Keys, Resource: s.options.Resource, MaxBody: s.options.MaxBody,
			Bodies: s.options.Bodies, Now: s.options.Now, Logger: s.options.Logger, Serve: s.serveForwarded,
		})
	}
	return s
}

// newServer is a server that answers nothing yet.
func newServer(o Options, upstream Upstream) *Server {
	o = o.withDefaults()
	origin, path := splitOrigin(o.Resource.String())
	s := &Server{
		options: o, path: path, upstream: upstream,
		open: response.NewOpenSet(response.Options{
			Authorization: o.Authorization, Resource: o.Resource, Relays: upstream != nil, Limits: o.Limits, Limited: o.Limited, Now: o.Now, Logger: o.Logger,
		}),
		policy:    policy{catalogue: o.Scopes, allows: o.ToolPolicy, needs: o.ToolScopes},
		gate:      newGate(o),
		metadata:  newMetadata(o),
		challenge: challenger{metadata: origin + wellKnown + path},
		missing:   missingToken(o.Scopes.Defaults()),
		invalid:   invalidToken(o.Scopes.Defaults()),
	}
	s.replica = rand.Text()
	return s
}

// Mount registers the endpoint, its message endpoint and its metadata (F6) at the resource's path. Unknown suffixes are 404, but
// for a slash.
func (s *Server) Mount(e *echo.Echo) {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions}
	e.Match(methods, orRoot(s.path), s.protect(s.endpoint))
	e.Match([]string{http.MethodPost, http.MethodOptions}, s.path+messagePath, s.protect(s.message))

	s.metadata.Mount(e, wellKnown+s.path, s.options.Follow)
	e.RouteNotFound(wellKnown+"/*", echo.NotFoundHandler)
	if s.path == "" {
		return
	}
	if !s.options.Further {
		s.metadata.Mount(e, wellKnown, s.options.Follow)
	}
	s.mountSlashed(e, methods)
	e.RouteNotFound(s.path+"/*", echo.NotFoundHandler)
}

// Join begins to answer what other replicas are asked about sessions of this one (R1).
func (s *Server) Join() error {
	if s.forwarder == nil {
		return nil
	}
	return s.forwarder.Listen()
}

// Settle waits until no request of another replica is under way. http.Server.Shutdown waits for those of clients only.
func (s *Server) Settle(ctx context.Context) {
	if s.forwarder != nil {
		s.forwarder.Wait(ctx)
	}
}

// CloseGrant ends every stream and session of a grant at once (G16).
func (s *Server) CloseGrant(grant string) { s.CloseEnded(oauth.Ended{Grants: []string{grant}}) }

// CloseEnded ends every stream and session of what has ended, whichever process ended it (G16). Doing it again is harmless.
func (s *Server) CloseEnded(ended oauth.Ended) { s.open.End(ended) }

// Idle reports that there is nothing that CloseEnded could end.
func (s *Server) Idle() bool { return s.open.Idle() }

// Open counts the streams and the sessions that are open.
func (s *Server) Open() (streams, sessions int) { return s.open.Count() }

// Drain ends every stream and session and admits no new ones, so that http.Server.Shutdown returns. It is meant for
// http.Server.RegisterOnShutdown.
func (s *Server) Drain() { s.open.Drain() }

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
