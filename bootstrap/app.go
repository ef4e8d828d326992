// Package bootstrap is what a host imports: it puts the domain, the use cases and the adapters together. This file is the only
// one that names them all.
package bootstrap

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/cimd"
	oauthhttp "github.com/pasteport/pasteport/adapters/http"
	"github.com/pasteport/pasteport/adapters/http/mcp"
	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/jose"
	"github.com/pasteport/pasteport/adapters/throttle"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/oauth"
)

// OAuthServer is the authorization server of one site.
type OAuthServer struct {
	server    *application.Server
	endpoints *oauthhttp.Endpoints
	config    oauth.Config
	stop      context.CancelFunc
}

// OAuthOption replaces a part that NewOAuthServer would otherwise choose.
type OAuthOption func(*parts)

type parts struct {
	clients oauth.ClientDirectory
	roots   *x509.CertPool
	look    Appearance

	sweepEvery time.Duration
}

// WithClientDirectory looks clients up elsewhere than in their published metadata documents.
func WithClientDirectory(clients oauth.ClientDirectory) OAuthOption {
	return func(p *parts) { p.clients = clients }
}

// WithRootCAs trusts these authorities instead of the system's when metadata documents are fetched.
func WithRootCAs(roots *x509.CertPool) OAuthOption {
	return func(p *parts) { p.roots = roots }
}

// Appearance is what a site may change about the pages that people see.
type Appearance = pages.Appearance

// WithAppearance gives the pages the site's name, colour and logo, and tells people where they find their token.
func WithAppearance(look Appearance) OAuthOption {
	return func(p *parts) { p.look = look }
}

// NewOAuthServer builds the authorization server over a store. It reports every mistake in the config at once. The store stays
// the caller's to close, after Close.
func NewOAuthServer(config oauth.Config, store oauth.Store, options ...OAuthOption) (*OAuthServer, error) {
	chosen := parts{sweepEvery: sweepEvery}
	for _, option := range options {
		option(&chosen)
	}
	config, err := complete(config, store)
	settings, mistakes := config.Settings()
	if err = errors.Join(err, mistakes, chosen.look.Check()); err != nil {
		return nil, err
	}
	directory := newDirectory(config, settings, chosen.roots)
	if chosen.clients == nil {
		chosen.clients = directory
	}
	var keys oauth.KeyDirectory = directory
	if own, both := chosen.clients.(oauth.KeyDirectory); both { // whoever limits where clients come from limits their keys too
		keys = own
	}
	server := application.NewServer(settings, application.Ports{
		Store: store, Clients: chosen.clients, Keys: keys, Assertions: jose.Reader{},
		Verifier: verifierOf(config), Guesses: throttle.NewGuesses(),
		Now: config.Now, Random: config.Random, Logger: config.Logger,
	})
	endpoints, err := oauthhttp.New(server, oauthhttp.Options{
		Failures: throttle.NewFailures(), Appearance: chosen.look, Now: config.Now, Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	authz := &OAuthServer{server: server, endpoints: endpoints, config: config}
	authz.startSweeping(chosen.sweepEvery)
	return authz, nil
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
	keeper, keeps := store.(oauth.SecretKeeper)
	if len(config.Secret) > 0 || !keeps {
		return config, nil
	}
	secret, err := keeper.Secret()
	if err != nil {
		return config, fmt.Errorf("reading the store's secret: %w", err)
	}
	config.Secret = secret
	return config, nil
}

func newDirectory(config oauth.Config, settings *oauth.Settings, roots *x509.CertPool) *cimd.Directory {
	var ports []uint16
	for _, port := range config.ClientIDPorts {
		if number, err := strconv.ParseUint(port, 10, 16); err == nil {
			ports = append(ports, uint16(number))
		}
	}
	return cimd.New(cimd.Options{
		Issuer: settings.Issuer, Rules: settings.Metadata, AllowLoopback: config.AllowLoopbackClients, Ports: ports,
		AnyContentType: config.AllowAnyContentType, AllowNAT64: config.AllowNAT64, DeniedPrefixes: config.DeniedPrefixes,
		Now: config.Now, Logger: config.Logger, RootCAs: roots,
	})
}

// EndGrantsOf ends every grant that was made with one of the site's tokens; call it when the site revokes that token. It
// returns how many were alive.
func (a *OAuthServer) EndGrantsOf(ctx context.Context, token string) (int, error) {
	return a.server.EndGrantsOf(ctx, token)
}

// Close stops the work in the background.
func (a *OAuthServer) Close() { a.stop() }

// MCPServer is the protected MCP server.
type MCPServer struct {
	authz   *OAuthServer
	options mcp.Options
	mounted *mcp.Server
}

// MCPOption says how an MCP server is protected.
type MCPOption func(*MCPServer)

// WithOAuth attaches the authorization server; Register needs it.
func WithOAuth(authz *OAuthServer) MCPOption { return func(m *MCPServer) { m.authz = authz } }

// WithToolPolicy decides which tools a caller may know and call, usually by their roles.
func WithToolPolicy(allows func(caller oauth.Caller, tool string) bool) MCPOption {
	return func(m *MCPServer) { m.options.ToolPolicy = allows }
}

// WithToolScopes names the scopes that calling a tool needs; a client without them is told to ask for them (G10).
func WithToolScopes(needs func(tool string) oauth.Scopes) MCPOption {
	return func(m *MCPServer) { m.options.ToolScopes = needs }
}

// WithAllowedOrigins lets pages of other origins call the MCP endpoint from a browser.
func WithAllowedOrigins(origins ...string) MCPOption {
	return func(m *MCPServer) { m.options.AllowedOrigins = origins }
}

// WithAllowedHosts accepts other names in the Host header of a server on this computer than its own; a public server takes any.
func WithAllowedHosts(hosts ...string) MCPOption {
	return func(m *MCPServer) { m.options.AllowedHosts = hosts }
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
	settings := m.authz.server.Settings()
	o.Issuer, o.Resource, o.ResourceName, o.Scopes = settings.Issuer, settings.Resource, settings.ResourceName, settings.Catalogue
	o.Authorization, o.Now, o.Logger = m.authz.server, m.authz.config.Now, m.authz.config.Logger
	return o
}

// Register mounts every endpoint, of the authorization server and of the MCP server, on the site's Echo.
func (m *MCPServer) Register(site *echo.Echo) error {
	if m.mounted == nil {
		return fmt.Errorf("registering the MCP server: %w", errNoServer)
	}
	if m.authz == nil {
		return fmt.Errorf("registering the MCP server: it has no OAuth server: pass WithOAuth to NewMCPServer, or use ServeStdio")
	}
	m.authz.server.OnGrantEnded(m.mounted.CloseGrant)
	m.mounted.Mount(site)
	m.authz.endpoints.Mount(site)
	return nil
}

// Drain ends every open stream; hand it to http.Server.RegisterOnShutdown.
func (m *MCPServer) Drain() {
	if m.mounted != nil {
		m.mounted.Drain()
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
