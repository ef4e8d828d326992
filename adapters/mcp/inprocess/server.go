// Package inprocess serves an MCP server of the official Go SDK behind a guard. A Server serves all
// revisions from 2024-11-05 (HTTP+SSE) to 2026-07-28 (stateless) at one endpoint, and ServeStdio
// serves it to a local client.
//
// A request that the guard has admitted passes these steps in order:
//
//	dispatch  selects the SDK's handler with or without sessions, or HTTP+SSE of this package
//	receive   inside the SDK: checks and filters tools, prompts and resources, for all transports
//
// Package eventstore lets a client resume a stream.
//
// A session is in one process. Package peers brings the requests of its clients there.
package inprocess

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/eventstore"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/response"
)

const maxEventBytes = 10 << 20 // of all sessions

// Options configure a Server.
type Options struct {
	guard.Options
	Sessions       guard.Sessions // not needed for ServeStdio
	SessionTimeout time.Duration  // without a request, open call or listening client; 0 for 1 hour
}

// Server is a server of the SDK behind its guard.
type Server struct {
	*guard.Guard
	options     Options
	messagePath string
	responses   *response.Registry

	mcp         *sdk.Server
	unprotected sdk.MethodHandler // of the SDK's server, without the policy

	sessions  http.Handler      // 2025-03-26 to 2025-11-25
	events    *eventstore.Store // of sessions
	stateless http.Handler      // 2026-07-28 and later
	legacy    sync.Map          // 2024-11-05: *legacySession by id
}

// New protects a server of the SDK. Call it once for each server, because it adds receiving
// middleware.
func New(server *sdk.Server, o Options) *Server {
	o.Options = o.WithDefaults()
	registry := o.Responses()
	registry.IdleTimeout = cmp.Or(o.SessionTimeout, time.Hour)
	responses := response.NewRegistry(registry)
	s := &Server{
		Guard:       guard.New(o.Options, responses),
		options:     o,
		messagePath: guard.MessagePath(o.Resource),
		responses:   responses,
		mcp:         server,
		events:      eventstore.New(maxEventBytes, responses.RemoveSession),
	}
	get := func(*http.Request) *sdk.Server { return server }
	s.sessions = withTokenInfo(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		EventStore:                 s.events,
		MaxRequestBodyBytes:        -1,   // the guard has read the body
		DisableLocalhostProtection: true, // the guard checks hosts
		Logger:                     o.Logger,
	}))
	s.stateless = withTokenInfo(sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Stateless:                    true,
		PropagateRequestCancellation: true,
		MaxRequestBodyBytes:          o.MaxRequestBody,
		DisableLocalhostProtection:   true,
		Logger:                       o.Logger,
	}))
	server.AddReceivingMiddleware(s.receive)
	if s.Audit().IsOn() {
		server.AddReceivingMiddleware(s.auditCalls)
	}
	return s
}

// Mount registers the endpoints at the path of the resource.
func (s *Server) Mount(e *echo.Echo) { s.Guard.Mount(e, s) }
