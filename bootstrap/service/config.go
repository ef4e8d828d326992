package service

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/netip"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service/httpserver"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	DefaultAddr      = "127.0.0.1:8080"
	DefaultAdminAddr = "127.0.0.1:8081"
	AdminOff         = "off"

	defaultDataDir = "pasteport-data"
	defaultAccent  = "#0b5a4a" // as in style.css
	logoLimit      = 12 << 10
)

// Config describes a service. DefaultConfig returns one with the defaults, and its Table reads the
// settings of the program into it.
type Config struct {
	oauth.Config
	Addr     string         // listen address
	DataDir  string         // folder of site.json and oauth.db; created if missing
	Database DatabaseConfig // database server that holds the grants instead of oauth.db
	// URL where other replicas reach this one; "" for a single process.
	Advertise    string
	Development  bool // allows an http issuer and metadata documents on this computer
	Metadata     cimd.Options
	DoctorClient bool     // publishes the client document of doctor
	AllowClients []string // hosts of the clients that may connect; empty for every client
	// Folder of metadata documents that are used without a fetch; "" for none.
	ClientDocuments string
	WellKnownFiles  string               // folder of further files below /.well-known/; "" for none
	Appearance      bootstrap.Appearance // of the consent, error and connections pages
	LogoFile        string               // read into Appearance.Logo
	Verification    Verification         // how pasted tokens are verified
	Gateway         GatewayConfig        // with upstreams, the service is a gateway and has no demo site
	EditorToken     string               // token of the demo site's editor; if empty, the first start generates one
	AdminAddr       string               // host:port of the admin listener; "" or "off" for none
	AllowedOrigins  []string             // origins of web pages that may call the MCP endpoints from a browser
	AllowedHosts    []string             // additional Host names that a service on this computer accepts
	TrustedProxies  []netip.Prefix       // networks whose X-Forwarded-For or Forwarded is trusted
	MaxRequestBody  int64                // bytes of a message to an MCP server
	TLS             TLSConfig
	// Open at the same time; 0 derives the number from the process's limits on memory and files.
	MaxConnections int
	RootCAs        *x509.CertPool // nil for the system's
	Audit          AuditConfig
	LogFormat      string // text or json
	LogLevel       string // debug, info, warn or error

	More             []bootstrap.OAuthOption // of the OAuth server
	UpstreamsChecked func([]UpstreamStatus)  // called by Serve after the first check of all upstreams; nil for none
}

// DefaultConfig returns the defaults that the command line shows.
func DefaultConfig() *Config {
	c := &Config{
		Addr:      DefaultAddr,
		AdminAddr: DefaultAdminAddr,
		DataDir:   defaultDataDir,
		LogFormat: "text",
		LogLevel:  "info",
	}
	c.MaxRequestBody = guard.DefaultRequestBody
	c.Database.Connections = defaultDatabaseConnections
	c.TLS.Directory, c.Gateway.Credential, c.Gateway.Patience = letsEncrypt, bootstrap.CredentialHostToken,
		upstream.DefaultPatience
	c.Gateway.ProgramLimits = bootstrap.DefaultProgramLimits()
	for _, l := range c.Lifetimes() {
		*l.Value = l.Default
	}
	c.SelfRegistration, c.RefreshTokens, c.Limits = true, oauth.RefreshRegistered, oauth.DefaultLimits()
	return c
}

// IsGateway reports whether the service is a gateway to other MCP servers instead of the demo site.
func (c Config) IsGateway() bool { return len(c.Gateway.Upstreams) > 0 }

// Listen opens Addr. Call it before everything else, so that a second start fails without creating
// files.
func (c Config) Listen() (net.Listener, error) {
	return httpserver.Listen("--addr", c.Addr, DefaultAddr)
}

// bounds returns the bounds of the service's listener.
func (c Config) bounds() httpserver.Bounds {
	connections, capacity := c.MaxConnections, httpserver.ProcessCapacity()
	if connections <= 0 {
		connections = capacity.Connections()
	}
	c.Logger.Debug("limiting the connections that are open at once", "connections", connections, "memory",
		capacity.Memory, "files", capacity.Files)
	return httpserver.BoundsFor(connections)
}

// LogJSON is the LogFormat of JSON lines.
const LogJSON = "json"

// NewLogger returns a logger that writes to w in the configured format.
func (c *Config) NewLogger(w io.Writer) *slog.Logger {
	var options slog.HandlerOptions
	var level slog.Level
	if level.UnmarshalText([]byte(c.LogLevel)) == nil { // an invalid level, which the settings refuse, leaves info
		options.Level = level
	}
	if c.LogFormat == LogJSON {
		return slog.New(slog.NewJSONHandler(w, &options))
	}
	return slog.New(slog.NewTextHandler(w, &options))
}

func (c *Config) readLogo() (err error) {
	if c.LogoFile == "" {
		return nil
	}
	if c.Appearance.Logo, err = settings.ReadFile(c.LogoFile, logoLimit); err != nil {
		return oauth.NewMistake("%s cannot be read: %s", oauth.Field("Appearance.Logo"), err)
	}
	return nil
}
