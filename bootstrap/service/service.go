// Package service is Pasteport as a service: the demo site, a gateway to other MCP servers, or the
// authorization server of MCP servers elsewhere. The program fills in a Config from its settings;
// Config.Plan checks it and reads the files that it names; Plan.Open opens the databases and mounts
// every endpoint; Service.Serve serves until its context ends.
package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/pasteport/pasteport/adapters/audit"
	"github.com/pasteport/pasteport/adapters/certificates"
	oauthhttp "github.com/pasteport/pasteport/adapters/http"
	"github.com/pasteport/pasteport/adapters/http/forwarded"
	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service/httpserver"
	"github.com/pasteport/pasteport/bootstrap/service/upstreams"
	domain "github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/uri"
)

// Service is the demo site with Pasteport built in, a gateway to other MCP servers, or the
// authorization server alone.
type Service struct {
	Site     *demosite.Site // nil without the demo site
	NewToken string         // token that the first start has generated, to print once; "" otherwise
	Authz    *bootstrap.OAuthServer
	Echo     *echo.Echo

	prefix     string                 // path of the issuer
	servers    []*bootstrap.MCPServer // the demo site's, or one for each upstream
	upstreams  *upstreams.Watch
	checked    func([]UpstreamStatus) // Config.UpstreamsChecked
	logger     *slog.Logger
	store      *persistence.Store
	audit      *audit.File // nil without an audit file
	tls        *tls.Config // nil without TLS
	operations *operations
	bounds     httpserver.Bounds
	closers    []func() error // of what is open, in the order in which it was opened
}

// Open plans a service and opens it.
func Open(ctx context.Context, config Config) (*Service, error) {
	plan, err := config.Plan()
	if err != nil {
		return nil, err
	}
	return plan.Open(ctx)
}

// Open opens the admin listener, the databases and the audit file, and mounts every endpoint.
func (p *Plan) Open(ctx context.Context) (*Service, error) {
	config := p.Config
	operations, err := openOperations(ctx, config)
	if err != nil {
		return nil, err
	}
	capacity := httpserver.ProcessCapacity()
	connections := capacity.Connections()
	config.Logger.Debug("limiting the connections that are open at once", "connections", connections,
		"memory", capacity.Memory, "files", capacity.Files)
	service := &Service{
		Echo:       echo.New(),
		logger:     config.Logger,
		operations: operations,
		tls:        p.tls,
		bounds:     httpserver.BoundsFor(connections),
		checked:    config.UpstreamsChecked,
		closers:    []func() error{operations.close},
	}
	for _, step := range []func() error{
		func() error { return service.openDatabases(config) },
		func() error { return service.openAudit(config) },
		func() error { return service.assemble(ctx, p) },
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, service.Close())
		}
	}
	return service, nil
}

func (s *Service) openDatabases(config Config) (err error) {
	if err := MakeDataDir(config.DataDir); err != nil {
		return err
	}
	if !config.StoreLocation().IsServer() {
		lock, err := lockFolder(config.DataDir, config.Issuer)
		if err != nil {
			return err
		}
		s.closers = append(s.closers, lock.Close)
	}
	if config.IsSite() {
		if s.Site, err = demosite.Open(config.DataDir); err != nil { // it keeps no file open
			return err
		}
	}
	s.store, err = config.StoreLocation().Open()
	switch {
	case config.Database.SecretFile != "" && errors.Is(err, fs.ErrPermission):
		return mistaken("server-secret", "", err)
	case err == nil:
		s.closers = append(s.closers, s.store.Close)
	}
	return err
}

// assemble makes the OAuth server and the MCP servers and mounts them, as a host does.
func (s *Service) assemble(ctx context.Context, p *Plan) (err error) {
	config := p.Config
	authorization, err := p.oauth()
	if err != nil {
		return err
	}
	config.Appearance.Name = config.siteName()
	_, s.prefix = uri.SplitOrigin(config.Issuer)
	if config.verifier() == VerifierSite {
		authorization.Verifier = s.Site
	}
	options := []bootstrap.OAuthOption{
		bootstrap.WithMetadata(config.Metadata), bootstrap.WithRootCAs(config.RootCAs),
		bootstrap.WithClientDocuments(config.ClientDocuments),
		bootstrap.WithAppearance(config.Appearance),
		bootstrap.WithDecisions(s.operations.metrics.Decided), bootstrap.WithLimitObserver(s.operations.metrics.Limit),
	}
	s.Authz, err = bootstrap.NewOAuthServer(authorization, s.store, append(options, config.More...)...)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { s.Authz.Close(); return nil })
	// Other verifiers do not know the site's own tokens.
	if config.verifier() == VerifierSite {
		if s.NewToken, err = s.Site.EnsureEditorToken(config.EditorToken); err != nil {
			return err
		}
	}
	if s.servers, err = s.newServers(p); err != nil {
		return err
	}
	s.upstreams = config.watch(s.servers, s.Authz.Resources())
	s.closers = append(s.closers, func() error { s.upstreams.Close(); return nil })
	s.Echo.HideBanner, s.Echo.HidePort = true, true
	s.Echo.IPExtractor = forwarded.Extractor{
		Proxies:  config.TrustedProxies,
		Logger:   config.Logger,
		Unlisted: s.operations.noteProxy,
	}.IPExtractor()
	s.operations.metrics.Measure(s.Echo)
	s.operations.traces.Follow(s.Echo)
	s.Echo.Use(oauthhttp.Identify, accessLog(config.Logger), middleware.Recover())
	s.Echo.GET("/", s.Authz.Welcome)
	if config.WellKnownFiles != "" {
		files := oauthhttp.WellKnownFiles(config.WellKnownFiles)
		s.Echo.Match([]string{http.MethodGet, http.MethodHead}, "/.well-known/*", files)
	}
	for _, server := range s.servers {
		if err = server.Register(s.Echo); err != nil {
			return err
		}
	}
	if config.IsAlone() {
		if err = s.Authz.Register(s.Echo); err != nil {
			return err
		}
	}
	s.Echo.POST("/", echo.NotFoundHandler) // instead of 405, so that answerError helps an app with only the host
	s.Echo.HTTPErrorHandler = s.answerError
	s.operations.attach(s, config.Now)
	return nil
}

// answerError names the MCP servers to an app that was given the wrong URL. If the URL lacks only
// the path of the issuer, it says that a proxy has removed it.
func (s *Service) answerError(err error, c echo.Context) {
	if errors.Is(err, echo.ErrNotFound) {
		var urls []string
		for _, resource := range s.Authz.Resources() {
			urls = append(urls, resource.Resource.String())
		}
		said := "no MCP server has this URL: connect to " + strings.Join(urls, " or ")
		for _, route := range s.Echo.Routes() {
			if s.prefix != "" && route.Path == s.prefix+c.Request().URL.Path {
				said = "a proxy has removed " + s.prefix + " from the path of this request: it must pass the path " +
					"unchanged"
			}
		}
		err = echo.NewHTTPError(http.StatusNotFound, said)
	}
	s.Echo.DefaultHTTPErrorHandler(err, c)
}

// Serve serves on the listener until ctx ends, and checks the upstreams in the background. Then it
// ends open streams and lets other requests finish. From then on, the admin listener reports that
// the service is not ready; it is closed last.
func (s *Service) Serve(ctx context.Context, listener net.Listener) error {
	server := httpserver.New(s.Echo, s.bounds, s.logger)
	server.TLSConfig = s.tls
	server.RegisterOnShutdown(s.Drain)
	defer context.AfterFunc(ctx, func() { s.operations.draining.Store(true) })()
	defer s.operations.serve(s.logger)()
	s.upstreams.Start(s.checked)
	return server.ServeAndDrain(ctx, listener)
}

// UpstreamStatus is the state of an upstream, with the cause and the remedy if it does not work.
type UpstreamStatus = upstreams.Status

// CheckUpstreams checks every upstream now. Serve does so in the background.
func (s *Service) CheckUpstreams(ctx context.Context) []UpstreamStatus { return s.upstreams.Check(ctx) }

// Drain ends every open stream; Serve does so when it stops.
func (s *Service) Drain() {
	for _, server := range s.servers {
		server.Drain()
	}
}

// countOpen counts the open streams and sessions.
func (s *Service) countOpen() (streams, sessions int) {
	for _, server := range s.servers {
		itsStreams, itsSessions := server.Open() // their numbers
		streams, sessions = streams+itsStreams, sessions+itsSessions
	}
	return streams, sessions
}

// Close ends the background work and closes what Open has opened, in reverse order.
func (s *Service) Close() (err error) {
	for _, closeOne := range slices.Backward(s.closers) {
		err = errors.Join(err, closeOne())
	}
	return err
}

// version is set by the linker for releases: -ldflags "-X
// github.com/pasteport/pasteport/bootstrap/service.version=v1.2.3".
var version string

// Version returns the version that the linker flag, or else the Go toolchain, put into the binary.
func Version() string {
	build, ok := debug.ReadBuildInfo()
	if version != "" || !ok {
		return cmp.Or(version, "unknown")
	}
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			return build.Main.Version + " " + setting.Value
		}
	}
	return build.Main.Version
}

// newServers returns the MCP servers of this process, in the order of the upstreams of a gateway.
func (s *Service) newServers(p *Plan) (servers []*bootstrap.MCPServer, err error) {
	config := p.Config
	common := []bootstrap.MCPOption{
		bootstrap.WithAllowedOrigins(config.AllowedOrigins...), bootstrap.WithAllowedHosts(config.AllowedHosts...),
		bootstrap.WithMaxRequestBody(config.MaxRequestBody),
	}
	var recorders []domain.Recorder
	if config.Audit.Log {
		recorders = append(recorders, audit.Log(config.Logger, config.Audit.Arguments))
	}
	if s.audit != nil {
		recorders = append(recorders, s.audit.Record)
		common = append(common, bootstrap.WithAuditReady(s.audit.Ready))
	}
	if len(recorders) > 0 {
		common = append(common, bootstrap.WithAudit(func(ctx context.Context, call domain.Call) {
			for _, record := range recorders {
				record(ctx, call)
			}
		}))
	}
	if config.Advertise != "" {
		common = append(common, bootstrap.WithPeers(config.Advertise))
	}
	switch {
	case config.IsAlone():
		return nil, nil
	case config.IsSite():
		options := append(slices.Clone(common), bootstrap.WithOAuth(s.Authz), bootstrap.WithToolPolicy(s.Site.MayCall))
		return []*bootstrap.MCPServer{bootstrap.NewMCPServer(s.Site.MCPServer(bootstrap.CallerOf), options...)}, nil
	}
	g := config.Gateway
	resources := s.Authz.Resources() // the same number in the same order, as GatewayConfig.resources added them
	for i, address := range g.Upstreams {
		options := append(slices.Clone(common), bootstrap.WithOAuth(s.Authz),
			bootstrap.WithResource(resources[i].Resource.String()))
		if len(g.ToolScopes) > 0 {
			options = append(options, bootstrap.WithToolScopes(g.toolScopes))
		}
		options = append(options, p.policy...)
		to := g.GatewayConfig
		to.VerifiesTokens = config.verifier() == VerifierUpstream
		to.Reach, to.Logger, to.Observe = p.reach, config.Logger, func(r bootstrap.UpstreamRequest) {
			s.operations.metrics.Upstream(resources[i].Resource.String(), r.Method, r.Status, r.Took)
		}
		server, err := bootstrap.NewGateway(address.Upstream, to, options...)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// TLSConfig chooses the source of the certificate: two files, an ACME authority, or none.
type TLSConfig struct {
	CertFile  string   `set:"tls-cert" unset:"plain HTTP, for a TLS proxy in front" path:"file" example:"/etc/pasteport/cert.pem" doc:"PEM file with the certificate chain; reloaded when it changes"`
	KeyFile   string   `set:"tls-key" path:"file" example:"/etc/pasteport/key.pem" doc:"PEM file with the private key of tls-cert"`
	Domains   []string `set:"acme-domains" example:"[cms.example.com]" doc:"domains for which to get certificates by ACME; you accept the terms of the certificate authority, which must be able to reach addr at port 443 of each domain"`
	Email     string   `set:"acme-email" example:"ada@example.com" doc:"contact address for the certificate authority"`
	Directory string   `set:"acme-directory" default:"https://acme-v02.api.letsencrypt.org/directory" doc:"ACME directory URL of the certificate authority"`
}

// load returns the TLS configuration, nil for plain HTTP, or every mistake.
func (c TLSConfig) load(config Config) (*tls.Config, error) {
	var mistakes []error
	wrong := func(setting, sentence string, values ...any) {
		mistakes = append(mistakes, oauth.NewMistake(setting, sentence, values...))
	}
	if c.CertFile != "" && len(c.Domains) > 0 {
		wrong("tls-cert", "and acme-domains exclude each other: use a certificate from files or from an ACME authority")
	}
	if c.Email != "" && len(c.Domains) == 0 {
		wrong("acme-email", "is set, but acme-domains is empty: leave it out, or name the domains")
	}
	for _, name := range c.Domains {
		if !strings.Contains(strings.Trim(name, "."), ".") || strings.ContainsAny(name, "*/: ") {
			wrong("acme-domains", "has %q, which an ACME authority cannot validate: write domains like "+
				"cms.example.com", name)
		}
	}
	if !strings.HasPrefix(c.Directory, "https://") && len(c.Domains) > 0 {
		wrong("acme-directory", "is not https: write the directory URL of the authority, for example %s",
			certificates.LetsEncrypt)
	}
	var loaded *tls.Config
	switch {
	case c.CertFile+c.KeyFile != "":
		files, err := certificates.OpenFiles("tls", c.CertFile, c.KeyFile, config.Now, config.Logger)
		if mistakes = append(mistakes, err); err == nil {
			loaded = files.TLS()
		}
	case len(c.Domains) > 0:
		loaded = certificates.Authority{
			Directory: c.Directory,
			Domains:   c.Domains,
			Email:     c.Email,
			Cache:     filepath.Join(config.DataDir, "acme"),
			Roots:     config.RootCAs,
		}.TLS()
	}
	return loaded, errors.Join(mistakes...)
}
