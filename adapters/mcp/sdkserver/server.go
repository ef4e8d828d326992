// Package sdkserver serves an MCP server of the official Go SDK behind a guard. A Server serves all
// revisions from 2024-11-05 (HTTP+SSE) to 2026-07-28 (stateless) at one endpoint, and ServeStdio
// serves it to a local client.
//
// A request that the guard has admitted passes these steps in order:
//
//	Serve    selects the SDK's handler with or without sessions, or HTTP+SSE of this package
//	receive  inside the SDK: checks and filters tools, prompts and resources, for all transports
//
// A session is in one process. Package peers brings the requests of its clients there.
package sdkserver

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"
	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Options configure a Server.
type Options struct {
	guard.Options
	Sessions       guard.Sessions // not needed for ServeStdio
	SessionTimeout time.Duration  // without a request, open call or listening client; 0 for 1 hour
}

// Server is a server of the SDK behind its guard.
type Server struct {
	*guard.Guard
	options   Options
	responses *stream.Registry

	mcp         *sdk.Server
	unprotected sdk.MethodHandler // of the SDK's server, without the policy; receive sets it

	sessions  http.Handler  // 2025-03-26 to 2025-11-25
	events    *stream.Store // of sessions
	stateless http.Handler  // 2026-07-28 and later
	legacy    sync.Map      // 2024-11-05: *legacySession by id
}

// New protects a server of the SDK. Call it once for each server, because it adds receiving
// middleware.
func New(server *sdk.Server, o Options) *Server {
	o.Options = o.WithDefaults()
	registry := o.Responses()
	registry.IdleTimeout = cmp.Or(o.SessionTimeout, time.Hour)
	responses := stream.NewRegistry(registry)
	s := &Server{
		Guard:     guard.New(o.Options, responses),
		options:   o,
		responses: responses,
		mcp:       server,
		events:    stream.NewStore(stream.StoreSize, responses.RemoveSession),
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
	if o.Audit != nil {
		server.AddReceivingMiddleware(s.auditCalls)
	}
	return s
}

// Mount registers the endpoints at the path of the resource.
func (s *Server) Mount(e *echo.Echo) { s.Guard.Mount(e, s) }

// ToolNames returns the names of the tools, also those that a policy hides; none if a middleware of
// the host refuses to list them.
func (s *Server) ToolNames(ctx context.Context) (names []string) {
	defer func() { _ = recover() }() // a middleware of the host may need a request of HTTP
	_, transport := sdk.NewInMemoryTransports()
	session, err := s.mcp.Connect(ctx, transport, nil)
	if err != nil {
		return nil
	}
	defer func() { _ = session.Close() }()
	extra := &sdk.RequestExtra{TokenInfo: (&stream.Identity{Resource: s.options.Resource}).TokenInfo()}
	for params := new(sdk.ListToolsParams); ; {
		result, err := s.unprotected(ctx, "tools/list",
			&sdk.ListToolsRequest{Session: session, Params: params, Extra: extra})
		page, isListed := result.(*sdk.ListToolsResult)
		if err != nil || !isListed {
			return names
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if page.NextCursor == "" {
			return names
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
}

// Read implements guard.Backend.
func (s *Server) Read(_ *stream.Writer, r *http.Request, text []byte) message.Body {
	b, err := message.Read(r.Header, text)
	if err != nil {
		b.Refused = message.Refuse(err, text)
	}
	return b
}

// answering returns the response to a body. A refused body is served only so that the server gets
// errors for the answers that it waits for; the client gets the refusal instead of this response.
func answering(out *stream.Writer, b message.Body) http.ResponseWriter {
	if b.Refused != nil {
		return stream.Discard(out)
	}
	return out
}

// Serve implements guard.Backend. The version header alone does not determine the transport,
// because clients of HTTP+SSE may negotiate a later revision and then send its header.
func (s *Server) Serve(out *stream.Writer, r *http.Request, b message.Body) {
	w := answering(out, b)
	isStream := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost && b.Listens()
	switch {
	case isStream && !stream.Accepts(r, message.EventStream):
		stream.NotAcceptable(w, "a stream of text/event-stream")
	case r.Method == http.MethodPost:
		s.post(w, r, b)
	case r.Header.Get(message.VersionHeader) >= message.FirstStateless:
		w.Header().Set("Allow", http.MethodPost)
		message.WriteError(w, http.StatusMethodNotAllowed, "Method Not Allowed: this revision has no sessions")
	case r.Method == http.MethodDelete, r.Method == http.MethodGet && r.Header.Get(message.SessionHeader) != "":
		r.Header.Set("Accept", message.EventStream) // the SDK needs it
		s.inSession(w, r, b)
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Type", message.EventStream)
	default:
		s.openLegacy(out, r)
	}
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, b message.Body) {
	memory := s.options.Bodies.Reserve(stream.IdentityOf(r.Context()).Caller.Subject)
	w, finish, acceptable := stream.Negotiate(w, r, b.IsBatch, memory)
	if !acceptable {
		return
	}
	defer finish()
	r.Header.Set("Accept", "application/json, "+message.EventStream) // the SDK needs both
	switch {
	case b.IsStateless(), r.Header.Get(message.VersionHeader) >= message.FirstStateless:
		message.DecodeNameHeader(r.Header)
		b.SetOn(r)
		s.stateless.ServeHTTP(w, r)
	case r.Header.Get(message.SessionHeader) != "":
		s.inSession(w, r, b)
	case !b.Has("initialize"):
		message.WriteError(w, http.StatusBadRequest, "Bad Request: Mcp-Session-Id is missing")
	case s.responses.IsDraining():
		stream.Unavailable(w, stream.ShuttingDown)
	default:
		to := s.bindingID(w, s.owner(&stream.IdentityOf(r.Context()).Caller))
		s.serveSession(to, r, b, new(message.Sequence))
	}
}

// ServeStdio serves one local client in newline-delimited JSON, without OAuth, until in or ctx
// ends. Requests have the given caller, to which the tool policy applies.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser, caller oauth.Caller) error {
	local := localTransport{Transport: &sdk.IOTransport{Reader: in, Writer: out},
		info: (&stream.Identity{Sender: stream.Sender{Caller: caller}}).TokenInfo()}
	if err := s.mcp.Run(ctx, local); err != nil {
		return fmt.Errorf("serving stdio: %w", err)
	}
	return nil
}

type localTransport struct {
	sdk.Transport
	info *auth.TokenInfo
}

func (t localTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	connection, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting stdio: %w", err)
	}
	return localConnection{connection, t.info}, nil
}

// localConnection adds the caller to each request.
type localConnection struct {
	sdk.Connection
	info *auth.TokenInfo
}

func (c localConnection) Read(ctx context.Context) (rpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if request, ok := m.(*rpc.Request); ok {
		request.Extra = &sdk.RequestExtra{TokenInfo: c.info}
	}
	return m, err
}
