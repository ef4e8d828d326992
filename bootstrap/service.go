package bootstrap

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// ServiceConfig is what runs the demo site as a service; it is what the command line fills in.
type ServiceConfig struct {
	Issuer         string
	DataDir        string // holds content.db and oauth.db, made when missing
	AccessTokenTTL time.Duration
	AuthCodeTTL    time.Duration
	RecheckEvery   time.Duration
	Development    bool           // lets metadata documents come from this computer (C49)
	PrivateKeyJWT  bool           // clients may prove who they are by signed assertions (D33)
	Appearance     Appearance     // of the pages that people see
	EditorToken    string         // becomes a token of the site; one is made on first start when empty
	RootCAs        *x509.CertPool // nil: the system's
	Now            func() time.Time
	Logger         *slog.Logger
}

// Service is the demo site with Pasteport built in.
type Service struct {
	Site     *demosite.Site
	NewToken string // made on this first start, to be shown once; "" otherwise
	Authz    *OAuthServer
	Echo     *echo.Echo
	MCP      *MCPServer

	store *persistence.Store
}

// OpenService opens both databases and mounts everything, in the order that a host uses: store, OAuth server, MCP server,
// Register.
func OpenService(ctx context.Context, config ServiceConfig) (*Service, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if err := makeDataDir(config.DataDir); err != nil {
		return nil, err
	}
	site, err := demosite.Open(filepath.Join(config.DataDir, "content.db"))
	if err != nil {
		return nil, err
	}
	store, err := persistence.OpenSQLite(filepath.Join(config.DataDir, "oauth.db"))
	if err != nil {
		return nil, errors.Join(err, site.Close())
	}
	service := &Service{Site: site, store: store, Echo: echo.New()}
	if err := service.assemble(ctx, config); err != nil {
		return nil, errors.Join(err, service.Close())
	}
	return service, nil
}

// makeDataDir keeps the folder from other users, because it holds the server secret.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data folder: %w: choose one that can be written with --data", err)
	}
	return nil
}

// check finds mistakes before any file is made. The secret comes from a store that does not exist yet, so another stands in.
func (c ServiceConfig) check() error {
	config := c.oauth(new(demosite.Site))
	config.Secret, config.Now, config.Random = make([]byte, oauth.MinSecretLength), time.Now, rand.Reader
	_, err := config.Settings()
	return errors.Join(err, c.Appearance.Check())
}

func (c ServiceConfig) oauth(site *demosite.Site) oauth.Config {
	return oauth.Config{
		Issuer: c.Issuer, Verifier: site, ResourceName: "Demo site",
		AccessTokenTTL: c.AccessTokenTTL, AuthCodeTTL: c.AuthCodeTTL, RecheckEvery: c.RecheckEvery,
		AllowLoopbackIssuer: c.Development, AllowLoopbackClients: c.Development, PrivateKeyJWT: c.PrivateKeyJWT,
		Now: c.Now, Logger: c.Logger,
	}
}

func (s *Service) assemble(ctx context.Context, config ServiceConfig) (err error) {
	s.Authz, err = NewOAuthServer(config.oauth(s.Site), s.store, WithRootCAs(config.RootCAs), WithAppearance(config.Appearance))
	if err != nil {
		return err
	}
	if s.NewToken, err = s.Site.EnsureEditorToken(ctx, config.EditorToken); err != nil {
		return err
	}
	s.MCP = NewMCPServer(s.Site.MCPServer(CallerOf), WithOAuth(s.Authz), WithToolPolicy(s.Site.MayCall))
	s.Echo.HideBanner, s.Echo.HidePort = true, true
	s.Echo.IPExtractor = echo.ExtractIPDirect() // Echo would believe any X-Forwarded-For (B6)
	s.Echo.Use(accessLog(config.Logger), middleware.Recover())
	s.Echo.GET("/", func(c echo.Context) error {
		return c.String(http.StatusOK, "This is a demo site. Connect an MCP client to "+s.Authz.server.Settings().Resource.String()+"\n")
	})
	return s.MCP.Register(s.Echo)
}

// Close ends the work in the background and closes both databases.
func (s *Service) Close() error {
	if s.Authz != nil {
		s.Authz.Close()
	}
	return errors.Join(s.store.Close(), s.Site.Close())
}

// accessLog writes one line per request, without its query, which may carry a state or a code (A42).
func accessLog(logger *slog.Logger) echo.MiddlewareFunc {
	return middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogMethod: true, LogURIPath: true, LogStatus: true, LogLatency: true, LogRemoteIP: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			logger.InfoContext(c.Request().Context(), "request", "method", v.Method, "path", v.URIPath, "status", v.Status,
				"duration", v.Latency, "address", v.RemoteIP)
			return nil
		},
	})
}
