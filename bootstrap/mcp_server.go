package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/peers"
	"github.com/pasteport/pasteport/adapters/mcp/sdkserver"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/quota"
)

// MCPServer is an MCP server behind the bearer token check (RFC 6750, RFC 9728).
type MCPServer struct {
	authz    *OAuthServer
	nilOAuth bool // WithOAuth got nil
	options  guard.Options
	address  string // at which other replicas reach this one; "" for none
	resource string // "" for the first of the Config
	mounted  guarded
	upstream checkedUpstream              // nil for a server that has none
	state    atomic.Pointer[check.Result] // of the last check

	keepsSessions bool // in this process

	addressOf    func(*http.Request) string // the client's address for Handler; nil for that of the peer
	wrongOptions []error
	isRegistered bool
}

// guarded is an MCP server behind its guard: an *sdkserver.Server or a *gateway.Gateway.
type guarded interface {
	Idle() bool
	CloseEnded(ended oauth.Ended)
	Mount(site *echo.Echo)
	CloseGrant(grant string)
	Open() (streams, sessions int)
	Drain()
}

func newMCPServer(options []MCPOption) *MCPServer {
	m := &MCPServer{}
	apply(options, m, &m.wrongOptions)
	return m
}

// NewMCPServer protects a server of the official Go SDK. Register needs WithOAuth; ServeStdio does
// not.
func NewMCPServer(server *sdk.Server, options ...MCPOption) *MCPServer {
	m := newMCPServer(options)
	if server != nil {
		options := sdkserver.Options{Options: m.protection()}
		if m.authz != nil {
			options.Sessions = m.sessions(&options.Options)
		}
		m.mounted = sdkserver.New(server, options)
	}
	return m
}

// sessions returns what binds the ids of sessions in this process to their owners. With WithPeers,
// the ids also name its address, and sessions sets o.Peers.
func (m *MCPServer) sessions(o *guard.Options) guard.Sessions {
	m.keepsSessions = true
	keys := m.authz.server.Settings.Keys
	if m.address == "" {
		return keys
	}
	o.Peers = peers.New(peers.Options{
		Address:  m.address,
		Resource: o.Resource,
		Keys:     keys,
		Now:      o.Now,
		Logger:   o.Logger,
	})
	return o.Peers
}

func (m *MCPServer) errNoOAuth(receiver string) error {
	if m.nilOAuth {
		return errors.New("the OAuth server is nil: look at the error of NewOAuthServer before you use it")
	}
	return errors.New("it has no OAuth server: pass WithOAuth to " + receiver)
}

var errNoServer = errors.New("the MCP server is nil: make one with mcp.NewServer and pass it to NewMCPServer")

func (m *MCPServer) protection() guard.Options {
	o := m.options
	if m.authz == nil {
		return o
	}
	settings, index := m.authz.server.Settings, max(m.resourceIndex(), 0) // Register reports an unknown resource
	resource := settings.Resources[index]
	o.Resource, o.ResourceName, o.NoRootMetadata = resource.Resource, resource.Name, index > 0
	o.Issuer, o.Scopes, o.Links = settings.Issuer, resource.Scopes, settings.Links
	o.Authorization, o.Now, o.Logger = m.authz.server.Tokens, m.authz.config.Now, m.authz.config.Logger
	o.Bodies = m.authz.bodies
	o.Limits, o.Limited, o.Calls = settings.Limits, m.authz.limited, m.authz.calls
	follow := m.authz.follow
	follow.Always = o.Audit != nil
	o.ClientLabel = func(id oauth.ClientID) string { return m.authz.server.Clients.LabelOf(id, "") }
	o.Welcome = func(c echo.Context, status int) error { return m.authz.endpoints.Welcome(c, status, resource) }
	o.Follow, o.HostTokens = follow.Middleware, settings.AcceptHostTokens
	o.Begin = func(c echo.Context) context.Context {
		m.authz.warnOnce.Do(func() { warnOfMissingLimits(c.Request(), m.authz.config.Logger) })
		ctx := follow.Begin(c)
		if settings.AcceptHostTokens {
			ctx = quota.WithRequester(ctx, m.authz.endpoints.RequesterOf(c))
		}
		return ctx
	}
	return o
}

// warnOfMissingLimits logs which limits are missing. Without them an unauthenticated request can
// hold memory or a connection for any time.
func warnOfMissingLimits(r *http.Request, logger *slog.Logger) {
	server, known := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !known {
		return
	}
	var missing []string
	if server.MaxHeaderBytes <= 0 {
		missing = append(missing, "MaxHeaderBytes")
	}
	if server.ReadHeaderTimeout <= 0 && server.ReadTimeout <= 0 {
		missing = append(missing, "ReadHeaderTimeout")
	}
	if len(missing) > 0 {
		logger.Warn("the http.Server of this site does not limit the memory and connections of "+
			"unauthenticated requests", "missing", strings.Join(missing, ", "),
			"advice", "set MaxHeaderBytes to 32 KiB and ReadHeaderTimeout to 10 s on it, or on Echo's Server and "+
				"TLSServer before Start")
	}
}

// Register mounts the endpoints of the authorization server and of the MCP server on the site's
// Echo. Call it after the site's own routes and tools are added. It reports all mistakes in one
// error and then mounts nothing: no WithOAuth, an unknown WithResource, invalid origins or hosts, a
// scope of a tool that is not in the Config, a WithIPExtractor that would have no effect, a route
// of the site that an endpoint would hide, a second registration, and two servers for one resource.
//
// The host sets the limits of its http.Server: MaxHeaderBytes (32 KiB), ReadHeaderTimeout,
// ReadTimeout, WriteTimeout (open streams extend it), and the number of connections
// (golang.org/x/net/netutil.LimitListener). The first request to the MCP server logs a warning if
// one of the first two is missing.
func (m *MCPServer) Register(site *echo.Echo) error {
	if err := m.checkRegistration(site); err != nil {
		return fmt.Errorf("registering the MCP server: %w", err)
	}
	resource, config := m.protection().Resource, m.authz.config
	if slices.Contains(m.options.AllowedOrigins, LoopbackOrigins) && !config.HasLoopbackIssuer() {
		config.Logger.Warn("web pages of every local program may call this public MCP server with an access token: "+
			"remove loopback from the allowed origins after development", "resource", resource.String())
	}
	if m.keepsSessions && m.address == "" && m.authz.replicas {
		config.Logger.Warn("replicas can share the store, but not sessions, because this one has no address: "+
			"with several replicas, a request for a session of another replica gets 404; "+
			"set advertise (WithPeers), or run one replica", "resource", resource.String())
	}
	m.authz.server.Operator.OnGrantEnded(m.mounted.CloseGrant)
	m.authz.ended.add(m.mounted)
	m.mountOn(site)
	m.authz.registered.add(site, resource, m.mountOn)
	m.isRegistered = true
	return nil
}

// mountOn mounts the endpoints. Another server may have mounted those of the OAuthServer already.
func (m *MCPServer) mountOn(site *echo.Echo) {
	m.mounted.Mount(site)
	m.authz.endpoints.Mount(site)
}

// Handler is Register for a site without Echo: it returns an http.Handler with every endpoint.
// Other paths get 404, so mount it where the site's own router has no route, such as "/" of an
// http.ServeMux. For several MCP servers under one issuer, register all on one echo.New(), which is
// an http.Handler too. Limits count by the address of the peer; behind a proxy, use
// WithIPExtractor.
func (m *MCPServer) Handler() (http.Handler, error) {
	endpoints := echo.New()
	endpoints.IPExtractor = m.addressOf
	if err := m.Register(endpoints); err != nil {
		return nil, err
	}
	return endpoints, nil
}

// Open returns the numbers of open streams and sessions.
func (m *MCPServer) Open() (streams, sessions int) {
	if m.mounted == nil {
		return 0, 0
	}
	return m.mounted.Open()
}

// Health returns an error while the upstream of a gateway gets no requests because it has failed
// repeatedly; for a program, from a failure until it answers a call. It is nil for other servers.
func (m *MCPServer) Health() error {
	if m.upstream == nil {
		return nil
	}
	return m.upstream.Health()
}

// Drain ends every open stream. Pass it to http.Server.RegisterOnShutdown.
func (m *MCPServer) Drain() {
	if m.mounted != nil {
		m.mounted.Drain()
	}
}

// ServeStdio serves the MCP server to a local client over its standard streams, without OAuth, as
// the given caller. It returns at the end of in or ctx.
func (m *MCPServer) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser, caller oauth.Caller) error {
	server, isLocal := m.mounted.(*sdkserver.Server)
	switch {
	case m.mounted == nil:
		return fmt.Errorf("serving stdio: %w", errNoServer)
	case !isLocal:
		return errors.New("serving stdio: the server does not use the official SDK")
	}
	return server.ServeStdio(ctx, in, out, caller)
}

// CallerOf returns the authenticated caller of a tool; false for a request that no MCPServer has
// passed.
func CallerOf(request sdk.Request) (oauth.Caller, bool) { return sdkserver.CallerOf(request) }

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

func (h hostHandler) Forward(w http.ResponseWriter, r *http.Request, b message.Body, caller oauth.Caller,
	_ oauth.HostToken) error {
	if r.Method == http.MethodPost {
		b.SetOn(r)
	}
	h(w, r, caller)
	return nil
}
