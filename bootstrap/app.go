// Package bootstrap is what a host imports: NewOAuthServer makes the authorization server from a Config and a store, NewMCPServer (or NewGateway,
// or Guard) protects an MCP server with it, and Register mounts both on the Echo of the host.
package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	oauthhttp "github.com/pasteport/pasteport/adapters/http"
	"github.com/pasteport/pasteport/adapters/http/mcp"
	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/jose"
	"github.com/pasteport/pasteport/adapters/journal"
	"github.com/pasteport/pasteport/adapters/throttle"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/bootstrap/internal/memory"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// bodiesShare is the part of the memory that the bodies of all requests may take at once. What is decoded from a body takes a few times as
// much, and all else needs memory too.
const bodiesShare = 8

// OAuthServer is the authorization server of one site.
type OAuthServer struct {
	server    *application.Server
	endpoints *oauthhttp.Endpoints
	config    oauth.Config
	follow    oauthhttp.Follower
	trace     trace.Log
	stop      context.CancelFunc
	journal   *journal.Journal
	ends      *ends
	host      hostServer
	bodies    *jsonrpc.BodyMemory
	limited   oauth.LimitObserver
}

// Appearance is what a site may change about the pages that people see.
type Appearance = pages.Appearance

// WithAppearance gives the pages the site's name, colour and logo, and tells people where they find their token.
func WithAppearance(look Appearance) OAuthOption {
	return func(p *parts) { p.look = look }
}

// NewOAuthServer builds the authorization server over a store. It reports every mistake in the config at once. The caller closes the store,
// after Close.
//
// A store may implement optional interfaces: oauth.SecretKeeper (without it Config needs a Secret), oauth.EndWatcher, oauth.WindowCounter,
// oauth.SecretWitness, oauth.AuthorizationLister, oauth.ClientLister and trace.Log. Those of a store that is wrapped in another type are lost
// unless the wrapper has them too. The log names those that are missing, at level info; docs/embedding.md describes what each is for.
func NewOAuthServer(config oauth.Config, store oauth.Store, options ...OAuthOption) (*OAuthServer, error) {
	chosen := parts{sweepEvery: sweepEvery}
	for _, option := range options {
		option(&chosen)
	}
	config, err := complete(config, store)
	settings, mistakes := config.Settings()
	counter, cannot := counterIn(store, chosen.sharedLimits)
	if err = errors.Join(err, mistakes, cannot, chosen.look.Check()); err != nil {
		return nil, err
	}
	reportMissing(store, config.Logger)
	directory := newDirectory(config, settings, chosen)
	if chosen.clients == nil {
		chosen.clients = directory
	}
	var keys oauth.KeyDirectory = directory
	if own, both := chosen.clients.(oauth.KeyDirectory); both { // whoever limits where clients come from limits their keys too
		keys = own
	}
	authz := &OAuthServer{config: config, limited: chosen.limited, bodies: jsonrpc.NewBodyMemory(memory.Limit() / bodiesShare)}
	noted := authz.keepTrace(store)
	witness, _ := store.(oauth.SecretVerifier)
	authz.server = application.NewServer(settings, application.Ports{
		Store: store, Clients: chosen.clients, Keys: keys, Assertions: jose.Reader{},
		Verifier: verifierOf(config), Verifiers: ownVerifiers(config), Guesses: newGuesses(counter, config, settings),
		Failures: throttle.NewFailures(settings.Limits.MaxUnknownTokensPerMinute),
		Witness:  witness, Trace: authz.trace, Journal: noted, OnDecision: chosen.decided, Limited: chosen.limited,
		Now: config.Now, Random: config.Random, Logger: config.Logger,
	})
	authz.endpoints, err = oauthhttp.New(authz.server, oauthhttp.Options{
		Appearance: chosen.look, Follow: authz.follow.Middleware, Logger: config.Logger,
	})
	authz.work(store, chosen.sweepEvery)
	if err = errors.Join(err, authz.agreeOnSecret()); err != nil {
		authz.Close()
		return nil, err
	}
	return authz, nil
}

// keepTrace follows connections where the store can keep their steps.
func (a *OAuthServer) keepTrace(store oauth.Store) (noted trace.Journal) {
	if log, keeps := store.(trace.Log); keeps {
		a.trace, a.journal = log, journal.New(log, a.config.Logger)
		noted = a.journal
	}
	a.follow = oauthhttp.Follower{Journal: noted, Now: a.config.Now}
	return noted
}

// Trace returns the attempts to connect that the store remembers, the newest first; none when it does not keep a trace.Log.
func (a *OAuthServer) Trace(ctx context.Context) ([]trace.Connection, error) {
	if a.trace == nil {
		return nil, nil
	}
	steps, err := a.trace.Steps(ctx, 0)
	return trace.Assemble(steps, a.config.Now()), err
}

// complete adds what only the outside world has: the clock, chance, the log, and the secret that the store keeps.
func complete(config oauth.Config, store oauth.Store) (oauth.Config, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Random == nil {
		config.Random = rand.Reader
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if store == nil {
		return config, errors.New("the store is nil: open one, for example with persistence.OpenSQLite(\"oauth.db\")")
	}
	if keeper, keeps := store.(oauth.SecretKeeper); keeps && config.Secrets == nil {
		config.Secrets = keeper
	}
	return config, nil
}

// Resources are the MCP servers of the Config as clients know them, the first one first.
func (a *OAuthServer) Resources() []oauth.ProtectedResource {
	return slices.Clone(a.server.Settings().Resources)
}

// EndGrantsOf ends every grant that was made with one of the site's tokens; call it when the site revokes that token. It
// returns how many were alive.
func (a *OAuthServer) EndGrantsOf(ctx context.Context, token string) (int, error) {
	return a.server.EndGrantsOf(ctx, token)
}

// work begins what goes on in the background until Close.
func (a *OAuthServer) work(store oauth.Store, sweepEvery time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	go a.sweep(ctx, sweepEvery)
	a.watchEnds(ctx, store)
	go a.watchSecret(ctx)
	go a.keepClients(ctx)
}

// keepClients runs in the background, because listing the grants of a large store takes long.
func (a *OAuthServer) keepClients(ctx context.Context) {
	if err := a.server.KeepClients(ctx); err != nil && ctx.Err() == nil {
		a.config.Logger.WarnContext(ctx, "cannot list the clients in use; fetches of other documents can evict theirs", "error", err)
	}
}

// Close stops the work in the background.
func (a *OAuthServer) Close() {
	a.stop()
	if a.journal != nil {
		a.journal.Close()
	}
}

// Grants returns the living grants of everybody, oldest first; the store has to be an oauth.AuthorizationLister.
func (a *OAuthServer) Grants(ctx context.Context) ([]oauth.Connection, error) {
	return a.server.Grants(ctx)
}

// EndGrants ends the chosen ones of the living grants at once, and returns how many of them were still alive.
func (a *OAuthServer) EndGrants(ctx context.Context, chosen func(oauth.Connection) bool) (int, error) {
	return a.server.EndGrants(ctx, chosen)
}

// MCPServer is the protected MCP server.
type MCPServer struct {
	authz    *OAuthServer
	options  mcp.Options
	resource string // "" for the first one
	mounted  *mcp.Server
}

// NewMCPServer protects a server of the official SDK; write tools as the SDK's documentation shows.
func NewMCPServer(server *sdk.Server, options ...MCPOption) *MCPServer {
	m := new(MCPServer)
	for _, option := range options {
		option(m)
	}
	if server != nil {
		m.mounted = mcp.New(server, m.protection())
	}
	return m
}

// errNoServer is what a host reads that passed no server of the SDK.
var errNoServer = errors.New("the MCP server is nil: make one with mcp.NewServer and pass it to NewMCPServer")

func (m *MCPServer) protection() mcp.Options {
	o := m.options
	if m.authz == nil {
		return o
	}
	settings, place := m.authz.server.Settings(), max(m.place(), 0) // Register refuses an unknown one
	o.Resource, o.ResourceName, o.Further = settings.Resources[place].Resource, settings.Resources[place].Name, place > 0
	o.Issuer, o.Scopes, o.Keys = settings.Issuer, settings.Catalogue, settings.Keys
	o.Authorization, o.Now, o.Logger = m.authz.server, m.authz.config.Now, m.authz.config.Logger
	o.Bodies = m.authz.bodies
	o.Limits, o.Limited = settings.Limits, m.authz.limited
	o.Follow, o.Begin = m.authz.follow.Middleware, m.authz.host.before(m.authz.follow.Begin, m.authz.config.Logger)
	return o
}

// Register mounts every endpoint, of the authorization server and of the MCP server, on the site's Echo. Bound the http.Server that the Echo
// runs on: MaxHeaderBytes of 32 KiB, ReadHeaderTimeout, ReadTimeout, WriteTimeout (open streams outlast it) and a limit on its connections
// (golang.org/x/net/netutil.LimitListener). The log warns at the first request to the MCP server when one of the first two is missing.
func (m *MCPServer) Register(site *echo.Echo) error {
	if m.mounted == nil {
		return fmt.Errorf("registering the MCP server: %w", errNoServer)
	}
	if m.authz == nil {
		return fmt.Errorf("registering the MCP server: it has no OAuth server: pass WithOAuth to NewMCPServer, or use ServeStdio")
	}
	if m.place() < 0 {
		return m.errUnknownResource()
	}
	if err := oauth.CheckPages(m.options.AllowedOrigins, m.options.AllowedHosts); err != nil {
		return fmt.Errorf("registering the MCP server: %w", err)
	}
	if err := m.mounted.Join(); err != nil {
		return fmt.Errorf("registering the MCP server: %w", err)
	}
	m.authz.server.OnGrantEnded(m.mounted.CloseGrant)
	m.authz.ends.add(m.mounted)
	m.mounted.Mount(site)
	m.authz.endpoints.Mount(site)
	return nil
}

// Open counts the streams and the sessions of clients that are open.
func (m *MCPServer) Open() (streams, sessions int) {
	if m.mounted == nil {
		return 0, 0
	}
	return m.mounted.Open()
}

// Drain ends every open stream; hand it to http.Server.RegisterOnShutdown.
func (m *MCPServer) Drain() {
	if m.mounted != nil {
		m.mounted.Drain()
	}
}

// Settle waits until no request of another replica is under way, at most until ctx ends; only a server WithBus has some. Close the bus
// afterwards.
func (m *MCPServer) Settle(ctx context.Context) {
	if m.mounted != nil {
		m.mounted.Settle(ctx)
	}
}

// ServeStdio serves the same server to a local client over its standard streams, without OAuth, as the given caller.
func (m *MCPServer) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser, caller oauth.Caller) error {
	if m.mounted == nil {
		return fmt.Errorf("serving stdio: %w", errNoServer)
	}
	return m.mounted.ServeStdio(ctx, in, out, caller)
}

// CallerOf tells a tool who is calling it.
func CallerOf(request sdk.Request) (oauth.Caller, bool) { return mcp.CallerOf(request) }
