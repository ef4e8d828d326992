// Package pasteporttest tests a site's own MCP server with a real client.
//
// New opens a loopback address and publishes the metadata document of an MCP client. The site
// builds its OAuth server from Site.Config, with bootstrap.WithRootCAs(site.RootCAs()), and
// Site.Serve runs its Echo. Site.Connect connects the client like a person: it uses the site's
// metadata, consent page and token endpoint, and returns a Connection with an authorized
// http.Client and a session of the official Go SDK. Connection.Expire, Refresh and End simulate its
// later life.
//
//	site := pasteporttest.New(t)
//	site.Serve(newEcho(site.Config(config), bootstrap.WithRootCAs(site.RootCAs())))
//	ada := site.Connect("a-token-of-ada", "mcp")
//	result, err := ada.Session().CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"})
//
// The test's Cleanup ends everything. Connect, Refresh and the other methods without an error
// result fail the test on an error; TryConnect and TryRefresh return a *Refusal if the site
// refuses. In Ginkgo, pass GinkgoTB() to New.
package pasteporttest

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pasteport/pasteport/bootstrap/pasteporttest/clientsite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Site is a site under test: its address, its clock, and the MCP client that people connect to it.
type Site struct {
	t        testing.TB
	server   *httptest.Server
	client   *clientsite.Site
	ahead    *atomic.Int64 // nanoseconds that the site's clock is ahead of the system's
	issuer   string        // empty before Config
	endpoint string        // of the MCP server
}

// New opens an address for the site and publishes a client. Both end with the test.
func New(t testing.TB) *Site {
	t.Helper()
	s := &Site{
		t:      t,
		server: httptest.NewUnstartedServer(nil),
		client: clientsite.Publish("pasteporttest"),
		ahead:  new(atomic.Int64),
	}
	t.Cleanup(s.client.Close)
	t.Cleanup(s.close)
	return s
}

func (s *Site) close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// URL returns the base URL of the site, which is the Issuer of a Config without a path.
func (s *Site) URL() string { return "http://" + s.server.Listener.Addr().String() }

// RootCAs returns a pool with the certificate of the client's host. Pass it to
// bootstrap.WithRootCAs, so that the OAuth server can fetch the client's metadata document.
func (s *Site) RootCAs() *x509.CertPool { return s.client.RootCAs() }

// Now returns the system time, moved forward by Advance and Connection.Expire.
func (s *Site) Now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// Advance moves the time of the site forward.
func (s *Site) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

// Config adapts the site's own config to the test. Issuer, Resource and the resources of
// MoreServers keep their paths and move to the address of the test; an empty Issuer becomes URL.
// Now becomes Site.Now. The client of the test is allowed, and its document may be on loopback. If
// Logger is nil, logs go to the test's output.
func (s *Site) Config(config oauth.Config) oauth.Config {
	config.Issuer, config.Resource = s.move(config.Issuer), s.move(config.Resource)
	if config.Issuer == "" {
		config.Issuer = s.URL()
	}
	servers := make([]oauth.ProtectedServer, 0, len(config.MoreServers))
	for _, server := range config.MoreServers {
		server.Resource = s.move(server.Resource)
		servers = append(servers, server)
	}
	config.MoreServers = servers
	config.AllowLoopbackIssuer, config.AllowLoopbackClients = true, true
	if allowed := config.AllowClient; allowed != nil {
		config.AllowClient = func(host string) bool { return host == s.client.Host() || allowed(host) }
	}
	config.Now = s.Now
	if config.Logger == nil {
		log := &testLog{output: s.t.Output()}
		s.t.Cleanup(func() {
			log.mu.Lock()
			defer log.mu.Unlock()
			log.output = io.Discard
		})
		config.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	s.issuer, s.endpoint = config.Issuer, config.WithDefaults().Resource
	return config
}

// move returns the URL at the address of the test.
func (s *Site) move(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw // NewOAuthServer reports an invalid URL
	}
	u.Scheme, u.Host = "http", s.server.Listener.Addr().String()
	return u.String()
}

// Serve runs the site's handler, usually its Echo, until the test ends.
func (s *Site) Serve(handler http.Handler) {
	s.t.Helper()
	if s.server.URL != "" {
		s.t.Fatalf("pasteporttest: Serve is called twice: a Site has one handler")
	}
	// The bounds are those that bootstrap's Register recommends.
	s.server.Config = &http.Server{Handler: handler, MaxHeaderBytes: 32 << 10, ReadHeaderTimeout: 10 * time.Second}
	s.server.Start()
	s.t.Cleanup(s.close) // again, because this one runs before the Cleanup of a store that was opened after New
}

// At returns a copy of the site whose Connect uses another MCP server: the one in
// Config.MoreServers whose URL has this path.
func (s *Site) At(path string) *Site {
	other := *s
	other.endpoint = s.URL() + path
	return &other
}

// testLog writes to the output of a test. Config's Cleanup discards later lines, because the
// testing package panics when a goroutine of the site writes after the test.
type testLog struct {
	mu     sync.Mutex
	output io.Writer
}

func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.output.Write(line)
}
