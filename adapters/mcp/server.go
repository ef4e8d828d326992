// Package mcp protects an MCP server with OAuth access tokens (RFC 6750, RFC 9728). New protects a
// server of the official Go SDK: a Server serves all revisions from 2024-11-05 (HTTP+SSE) to
// 2026-07-28 (stateless) at one endpoint, and ServeStdio serves it to a local client.
//
// A request passes these steps in order:
//
//	gate      checks Host and Origin, and sets CORS headers
//	guard     checks the bearer token, sets the caller and removes the token from the headers
//	admit     reads the body (package jsonrpc) and checks the scopes that it needs
//	dispatch  selects the SDK's handler with or without sessions, or HTTP+SSE of this package
//	policy    inside the SDK: filters and checks tools, prompts and resources, for all transports
//
// The response is a Writer of package response, which ends with the token or the grant. Package
// eventstore lets a client resume a stream.
//
// A session is in one process, whose random name is part of the session id. With a Bus, another
// replica passes a request through gate, guard and admit, and then package replica forwards it to
// the replica that owns the session.
//
// NewGateway protects an MCP server elsewhere: relay replaces dispatch, and an Upstream answers.
// With a Policy, admit refuses what the caller may not use, and package filter removes it from the
// responses.
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/http/wellknown"
	"github.com/pasteport/pasteport/adapters/mcp/eventstore"
	"github.com/pasteport/pasteport/adapters/mcp/replica"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	wellKnown     = "/.well-known/oauth-protected-resource"
	maxEventBytes = 10 << 20 // of all sessions
)

// Server protects one MCP server with OAuth access tokens: New one of the SDK in this process,
// NewGateway one elsewhere.
type Server struct {
	options  Options
	path     string // of the resource, "" for one without a path
	policy   policy
	auditor  *auditor // nil without an audit
	gate     gate
	metadata *wellknown.Document

	endpoint route    // of the MCP endpoint
	message  route    // of the message endpoint of HTTP+SSE
	upstream Upstream // of a gateway
	streams  sync.Map // of a gateway with a Policy: *messageStream of HTTP+SSE by the URL for its messages

	mcp       *sdk.Server        // nil in a gateway, like what follows
	sessions  http.Handler       // 2025-03-26 to 2025-11-25
	events    *eventstore.Store  // of sessions
	stateless http.Handler       // 2026-07-28 and later
	legacy    sync.Map           // 2024-11-05: *legacySession by id
	forwarder *replica.Forwarder // nil without a Bus

	unprotected sdk.MethodHandler // of the SDK's server, without the policy

	replica   string // random name of this process
	responses *response.Registry
	challenge challenger
	missing   refusal // for a request without a token
	invalid   refusal // for an invalid token
}

// New protects a server of the SDK. Call it once for each server, because it adds a receiving
// middleware.
func New(server *sdk.Server, o Options) *Server {
	s := newServer(o, nil)
	s.mcp, s.endpoint, s.message = server, withRefusedAnswers(s.dispatch), withRefusedAnswers(s.deliver)
	get := func(*http.Request) *sdk.Server { return server }
	s.events = eventstore.New(maxEventBytes, s.responses.RemoveSession)
	s.sessions = withTokenInfo(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		EventStore: s.events, MaxRequestBodyBytes: -1, // admit has read the body
		DisableLocalhostProtection: true, Logger: s.options.Logger, // the gate checks hosts
	}))
	s.stateless = withTokenInfo(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: s.options.MaxBody,
		DisableLocalhostProtection: true, Logger: s.options.Logger,
	}))
	server.AddReceivingMiddleware(s.receive)
	if s.auditor != nil {
		server.AddReceivingMiddleware(s.auditor.receive)
	}
	if s.options.Bus != nil {
		s.forwarder = replica.New(replica.Options{
			Bus:      s.options.Bus,
			Name:     s.replica,
			Keys:     s.options.Keys,
			Resource: s.options.Resource,
			MaxBody:  s.options.MaxBody,
			Bodies:   s.options.Bodies,
			Now:      s.options.Now,
			Logger:   s.options.Logger,
			Serve:    s.serveForwarded,
		})
	}
	return s
}

// newServer returns a server without routes.
func newServer(o Options, upstream Upstream) *Server {
	o = o.withDefaults()
	origin, path := splitOrigin(o.Resource.String())
	return &Server{
		options:  o,
		path:     path,
		upstream: upstream,
		replica:  rand.Text(),
		responses: response.NewRegistry(response.Options{
			Authorization: o.Authorization,
			Resource:      o.Resource,
			Relays:        upstream != nil,
			Limits:        o.Limits,
			StreamLimits:  o.StreamLimits,
			Limited:       o.Limited,
			IdleTimeout:   o.SessionTimeout,
			Now:           o.Now,
			Logger:        o.Logger,
		}),
		policy: policy{
			catalogue:  o.Scopes,
			tools:      o.Tools,
			prompts:    o.Prompts,
			resources:  o.Resources,
			toolScopes: o.ToolScopes,
		},
		auditor:   newAuditor(o, upstream != nil),
		gate:      newGate(o),
		metadata:  newMetadata(o),
		challenge: challenger{metadata: origin + wellKnown + path},
		missing:   missingToken(o.Scopes.Defaults()),
		invalid:   invalidToken(o.Scopes.Defaults()),
	}
}

// Mount registers the endpoint, its message endpoint and its metadata at the path of the resource.
// It answers 404 to longer paths, except for a trailing slash.
func (s *Server) Mount(e *echo.Echo) {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions}
	e.Match(methods, cmp.Or(s.path, "/"), s.protect(s.endpoint))
	e.Match([]string{http.MethodPost, http.MethodOptions}, s.path+messagePath, s.protect(s.message))

	s.metadata.Mount(e, wellKnown+s.path, s.options.Follow)
	e.RouteNotFound(wellKnown+"/*", echo.NotFoundHandler)
	if s.path == "" {
		return
	}
	if !s.options.NoRootMetadata {
		s.metadata.Mount(e, wellKnown, s.options.Follow)
	}
	s.mountTrailingSlash(e, methods)
	e.RouteNotFound(s.path+"/*", echo.NotFoundHandler)
}

// Join starts to answer requests that other replicas forward to sessions of this one.
func (s *Server) Join() error {
	if s.forwarder == nil {
		return nil
	}
	return s.forwarder.Listen()
}

// WaitForReplicas waits for the requests that other replicas have forwarded, or until ctx ends.
// http.Server.Shutdown waits only for those of clients.
func (s *Server) WaitForReplicas(ctx context.Context) {
	if s.forwarder != nil {
		s.forwarder.Wait(ctx)
	}
}

// CloseGrant ends the responses and sessions of a grant.
func (s *Server) CloseGrant(grant string) { s.CloseEnded(oauth.Ended{Grants: []string{grant}}) }

// CloseEnded ends the responses and sessions of grants and tokens that any process has ended. It
// may be repeated.
func (s *Server) CloseEnded(ended oauth.Ended) { s.responses.End(ended) }

// Idle reports whether there are no responses and no sessions.
func (s *Server) Idle() bool { return s.responses.Idle() }

// Open returns the numbers of open streams and sessions.
func (s *Server) Open() (streams, sessions int) { return s.responses.Count() }

// Drain ends all streams and sessions and admits no new ones. Pass it to
// http.Server.RegisterOnShutdown, because Shutdown waits for streams.
func (s *Server) Drain() { s.responses.Drain() }

// splitOrigin returns the origin of a URL and its path without a trailing slash.
func splitOrigin(uri string) (origin, path string) {
	scheme, rest, _ := strings.Cut(uri, "://")
	authority, path, found := strings.Cut(rest, "/")
	if found {
		path = "/" + path
	}
	return scheme + "://" + authority, strings.TrimSuffix(path, "/")
}
