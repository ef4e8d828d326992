// Package service is the program: the demo site or a gateway as a service, and every command beside it.
package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/pasteport/pasteport/adapters/nats"
	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Config is what runs the demo site as a service; it is what the command line fills in.
type Config struct {
	oauth.Config
	Addr           string               // to listen on
	DataDir        string               // holds content.db and oauth.db, made when missing
	Database       DatabaseConfig       // where grants are kept instead of oauth.db
	Bus            string               // URL of the NATS server to the other replicas, with its password; "" for none
	Development    bool                 // lets the issuer be http on this computer, and metadata documents come from it (C49)
	AllowClients   []string             // hosts of the clients that may connect; empty lets everybody (A8)
	Appearance     bootstrap.Appearance // of the pages that people see
	LogoFile       string               // becomes the logo of Appearance
	Verification   Verification         // who is asked about the tokens that people paste
	Gateway        GatewayConfig        // with upstreams, there is no demo site
	EditorToken    string               // becomes a token of the site; one is made on first start when empty
	AdminAddr      string               // host:port of the admin listener; "" or "off" for none
	AllowedOrigins []string             // of web pages that may call the MCP endpoints from a browser
	AllowedHosts   []string             // names besides its own under which a service on this computer answers
	TrustedProxies []netip.Prefix       // whose X-Forwarded-For or Forwarded is believed
	MaxRequestBody int64                // in bytes, of a message to an MCP server; 0 for 4 MiB
	TLS            TLSConfig
	MaxConnections int            // open at once; 0 follows the limits of memory and files of the process
	RootCAs        *x509.CertPool // nil: the system's
	SharedLimits   bool           // bootstrap.WithSharedLimits, for several processes on one data folder
	LogFormat      string         // text or json
	LogLevel       string         // debug, info, warn or error
}

// Service is the demo site with Pasteport built in, or a gateway to other MCP servers.
type Service struct {
	Site     *demosite.Site // nil in a gateway
	NewToken string         // made on this first start, to be shown once; "" otherwise
	Authz    *bootstrap.OAuthServer
	Echo     *echo.Echo

	servers    mcpServers
	logger     *slog.Logger
	store      *persistence.Store
	bus        *nats.Bus   // nil without other replicas
	tls        *tls.Config // nil without TLS
	operations *operations
	bounds     bounds
}

// Open opens both databases and mounts everything, in the order that a host uses: store, OAuth server, MCP server,
// Register.
func Open(ctx context.Context, config Config) (*Service, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config.Logger = slog.New(requestLog{cmp.Or(config.Logger, slog.Default()).Handler()})
	if config.Now == nil {
		config.Now = time.Now
	}
	operations, err := openOperations(ctx, config)
	if err != nil {
		return nil, err
	}
	service := &Service{Echo: echo.New(), logger: config.Logger, operations: operations}
	service.bounds = config.bounds()
	if service.tls, err = config.TLS.server(config); err != nil {
		return nil, errors.Join(err, service.Close())
	}
	if err := service.openDatabases(config); err != nil {
		return nil, errors.Join(err, service.Close())
	}
	if err := service.openBus(config); err != nil {
		return nil, errors.Join(err, service.Close())
	}
	if err := service.assemble(ctx, config); err != nil {
		return nil, errors.Join(err, service.Close())
	}
	return service, nil
}

func (s *Service) openDatabases(config Config) (err error) {
	if err := makeDataDir(config.DataDir); err != nil {
		return err
	}
	if !config.isGateway() {
		if s.Site, err = demosite.Open(filepath.Join(config.DataDir, "content.db")); err != nil {
			return err
		}
	}
	s.store, err = config.openStore()
	return err
}

// makeDataDir keeps the folder from other users, because it holds the server secret.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data folder: %w: choose one that can be written with --data", err)
	}
	return nil
}

// check finds mistakes before any file is made. The secret comes from a store that does not exist yet, so another stands in.
func (c Config) check() error {
	config := c.oauth(func(string) oauth.BearerVerifier { return new(demosite.Site) })
	config.Secret, config.Now, config.Random = make([]byte, oauth.MinSecretLength), time.Now, rand.Reader
	_, err := config.Settings()
	return errors.Join(err, c.Appearance.Check(), c.Verification.check(c.isGateway()), c.Gateway.check(config, c.Verification), checkProxies(c.TrustedProxies), c.checkPages(), c.checkMaxRequestBody(), c.TLS.check(), c.Database.check(), c.checkBus())
}

// oauth is the config of the OAuth server; asking returns who is asked about the tokens of an upstream, or of the site.
func (c Config) oauth(asking func(upstream string) oauth.BearerVerifier) oauth.Config {
	config := c.Gateway.resources(c.Config, asking)
	config.AllowLoopbackIssuer, config.AllowLoopbackClients = c.Development, c.Development
	if len(c.AllowClients) > 0 {
		config.AllowClient = c.allows
	}
	return config
}

// allows leaves it to client-id-ports which port a client's document may be on.
func (c Config) allows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains(c.AllowClients, strings.ToLower(host))
}

func (s *Service) assemble(ctx context.Context, config Config) (err error) {
	asking, err := config.verifiers(s.Site)
	if err != nil {
		return err
	}
	options := []bootstrap.OAuthOption{
		bootstrap.WithRootCAs(config.RootCAs), bootstrap.WithAppearance(config.Appearance), bootstrap.WithDecisions(s.operations.metrics.Decided),
		bootstrap.WithLimitObserver(s.operations.metrics.Limit),
	}
	if config.SharedLimits {
		options = append(options, bootstrap.WithSharedLimits())
	}
	s.Authz, err = bootstrap.NewOAuthServer(config.oauth(asking), s.store, options...)
	if err != nil {
		return err
	}
	if config.Verification.chosen(config.isGateway()) == VerifierSite { // nobody would ask about the site's own
		if s.NewToken, err = s.Site.EnsureEditorToken(ctx, config.EditorToken); err != nil {
			return err
		}
	}
	if s.servers, err = s.newServers(config); err != nil {
		return err
	}
	s.Echo.HideBanner, s.Echo.HidePort = true, true
	s.Echo.IPExtractor = bootstrap.BehindProxies(config.Logger, config.TrustedProxies...)
	s.operations.observe(s.Echo)
	s.Echo.Use(identify, accessLog(config.Logger), middleware.Recover())
	s.Echo.GET("/", func(c echo.Context) error {
		return c.String(http.StatusOK, s.greeting())
	})
	if err := s.servers.Register(s.Echo); err != nil {
		return err
	}
	s.operations.watch(s, config.Now)
	return nil
}

// Close ends the work in the background and closes what is open.
func (s *Service) Close() error {
	if s.Authz != nil {
		s.Authz.Close()
	}
	s.leave()
	err := s.operations.close()
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	if s.Site != nil {
		err = errors.Join(err, s.Site.Close())
	}
	return err
}
