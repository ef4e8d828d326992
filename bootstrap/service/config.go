package service

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service/httpserver"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	DefaultAddr      = "127.0.0.1:8080"
	DefaultAdminAddr = "127.0.0.1:8081"
	AdminOff         = "off"

	defaultAccent = "#0b5a4a" // as in style.css
	logoLimit     = 12 << 10
)

// Config describes a service. The settings of the program are the fields with tags, which package
// settings describes; those of a group are in the order of help. DefaultConfig returns their
// defaults.
type Config struct {
	Database        DatabaseConfig   `group:"Replicas"`
	Advertise       string           `set:"advertise" group:"Replicas" example:"http://10.0.1.7:8080" doc:"address of this replica for the others, http://host:port or https://host:port, in a private network; needed if several replicas keep MCP sessions, which serve and programs do"`
	Gateway         GatewayConfig    `group:"Gateway"` // with upstreams, the service is a gateway and has no demo site
	Verification    Verification     `group:"Token verification"`
	ResourceServers []ResourceServer `set:"resource-servers" group:"Resource and scopes" secret:"items" example:"[https://mcp.example.com/mcp = a-long-random-text-of-32-characters]" allowed:"servers such as \"https://mcp.example.com/mcp = secret\", or mappings with url, name, scopes, default-scopes and secret" doc:"MCP servers elsewhere that ask \"pasteport server\" about tokens (RFC 7662). Each is \"URL = secret\", or a mapping with url, name, scopes, default-scopes and secret, which may be file: and the path of a file"`

	AllowClients    []string     `set:"allow-clients" group:"Clients" unset:"every client" example:"[claude.ai]" pattern:"^[^/:@?# *]+$" allowed:"host names without scheme, port and path, such as claude.ai" doc:"hosts of the clients that may connect; self-registered stands for all clients that registered themselves; existing connections continue"`
	DoctorClient    bool         `set:"doctor-client" group:"Clients" unset:"off; on with dev" doc:"publish a client document for \"pasteport doctor\", so that it can check a whole login"`
	ClientDocuments string       `set:"client-documents" group:"Client metadata" field:"WithClientDocuments" unset:"none" path:"folder" example:"/etc/pasteport/clients" doc:"folder of metadata documents, one in each .json file, that are used without a fetch; read again when a file changes"`
	Metadata        cimd.Options `group:"Client metadata"`

	Limits         Limits               `group:"Limits"`
	Appearance     bootstrap.Appearance `group:"Pages"`
	LogoFile       string               `set:"logo" group:"Pages" field:"Appearance.Logo" path:"file" example:"logo.svg" doc:"file with the site's logo: PNG, JPEG, WebP or SVG of at most 12 KiB"`
	WellKnownFiles string               `set:"well-known-files" group:"Pages" unset:"none" path:"folder" example:"/etc/pasteport/well-known" doc:"folder of files of at most 1 MiB that are served below /.well-known/, such as security.txt and openai-apps-challenge, besides the service's own documents"`
	TLS            TLSConfig            `group:"TLS"`
	LogFormat      string               `set:"log-format" group:"Logging" default:"text" choices:"text,json" doc:"format of log lines, and of what is printed at startup"`
	LogLevel       string               `set:"log-level" group:"Logging" default:"info" choices:"debug,info,warn,error" doc:"minimum level of log lines"`
	Audit          AuditConfig          `group:"Audit of calls"`

	Authorization                 // before Addr, so that its group begins with issuer
	Addr           string         `set:"addr" group:"Service" default:"127.0.0.1:8080" doc:"address to listen on, as host:port"`
	AdminAddr      string         `set:"admin-addr" group:"Service" default:"127.0.0.1:8081" doc:"address of the admin listener with /, /grants, /healthz, /readyz, /metrics and /debug/pprof/; off disables it"`
	TrustedProxies []netip.Prefix `set:"trusted-proxies" group:"Service" unset:"none" example:"[127.0.0.1]" allowed:"networks such as 10.0.0.0/8, or addresses" doc:"networks of reverse proxies whose X-Forwarded-For or Forwarded header is trusted"`
	AllowedOrigins []string       `set:"allowed-origins" group:"Service" field:"WithAllowedOrigins" unset:"the issuer's own" example:"[http://localhost:6274]" doc:"origins of web pages that may call the MCP endpoints from a browser, each as scheme://host or scheme://host:port; loopback allows those of localhost, 127.0.0.1 and [::1], for development"`
	AllowedHosts   []string       `set:"allowed-hosts" group:"Service" field:"WithAllowedHosts" unset:"the issuer's host and loopback; with a public issuer, any name" example:"[host.docker.internal]" doc:"with dev: additional Host names that are accepted, with any port or with the given one"`
	MaxRequestBody int64          `set:"max-request-body" group:"Service" field:"WithMaxRequestBody" default:"4MiB" min:"64KiB" max:"1GiB" doc:"maximum size of a message to an MCP server"`
	DataDir        string         `set:"data" group:"Service" default:"pasteport-data" path:"folder" doc:"folder for the databases"`
	Development    bool           `set:"dev" group:"Service" field:"AllowLoopbackClients" doc:"development mode, for this computer: allows http and client metadata on loopback, and publishes client documents for local clients and doctor"`
	EditorToken    string         `set:"demo-token" group:"Service" secret:"true" doc:"token of the demo site's editor; if empty, the first start generates and prints one"`

	RootCAs          *x509.CertPool          // nil for the system's
	More             []bootstrap.OAuthOption // additional options of the OAuth server
	UpstreamsChecked func([]UpstreamStatus)  // called by Serve after the first check of all upstreams; nil for none
}

// groups are the titles of the settings, in the order of help.
var groups = []string{"Service", "Replicas", gatewayGroup, "Token verification", "Resource and scopes", "Lifetimes",
	"Clients", "Client metadata", "Limits", "Pages", "TLS", "Logging", "Audit of calls"}

const gatewayGroup = "Gateway"

// Authorization is oauth.Config with tags. Its fields have the same order, so that Go converts one
// into the other.
type Authorization struct {
	Issuer       string `set:"issuer" group:"Service" unset:"http:// followed by addr if dev is set" example:"https://cms.example.com" doc:"public https URL of the service, without a trailing slash; required"`
	VerifyBearer func(token string) bool
	Verifier     oauth.BearerVerifier

	AccessTokenTTL time.Duration   `set:"access-token-ttl" group:"Lifetimes" default:"1h" min:"1m" max:"24h" doc:"lifetime of an access token"`
	AuthCodeTTL    time.Duration   `set:"auth-code-ttl" group:"Lifetimes" default:"5m" min:"10s" max:"10m" doc:"lifetime of an authorization code"`
	RefreshIdleTTL time.Duration   `set:"refresh-idle-ttl" group:"Lifetimes" default:"720h" min:"1h" max:"8760h" doc:"a grant ends after this time without a refresh; at least access-token-ttl"`
	GrantTTL       time.Duration   `set:"grant-ttl" group:"Lifetimes" default:"4320h" min:"1h" max:"8760h" doc:"maximum lifetime of a grant"`
	GrantChoices   []time.Duration `set:"grant-choices" group:"Lifetimes" unset:"grant-ttl alone" example:"[1h, 24h, 168h, 720h]" allowed:"durations such as 12h or 7d" doc:"lifetimes of a grant that people choose from on the consent page, 1h to grant-ttl, the longest as the default"`
	RefreshTokens  string          `set:"refresh-tokens" group:"Lifetimes" default:"registered" choices:"requested,registered" doc:"which clients get refresh tokens: those that request offline_access, or also those that only declare the grant type refresh_token"`
	RefreshGrace   time.Duration   `set:"refresh-grace" group:"Lifetimes" default:"5m" min:"1s" max:"1h" off:"true" doc:"time for which each of the last four replaced refresh tokens still returns the newest tokens; the last one does so longer while these are unused"`
	RecheckEvery   time.Duration   `set:"recheck-every" group:"Lifetimes" unset:"5m with verifier file, http or introspection, else 0s" min:"1m" max:"8760h" off:"true" doc:"interval at which the pasted token is verified again while its grant is in use, in addition to each refresh"`

	HostTokenInUse   bool
	AcceptHostTokens bool              `set:"accept-host-tokens" group:"Token verification" doc:"accept the site's own tokens at the MCP endpoint, in the Authorization header or the one in present, for clients that cannot log in with OAuth"`
	HostFields       credential.Fields // besides those of the setting fields

	Resource      string `set:"resource" group:"Resource and scopes" unset:"the issuer followed by /mcp or the path of the first upstream" example:"https://cms.example.com/mcp" doc:"URL of the MCP server"`
	ResourceName  string `set:"resource-name" group:"Resource and scopes" unset:"site-name" example:"The Gazette's articles" doc:"name of the MCP server on the pages; with several upstreams, the path of each is appended"`
	MoreServers   []oauth.ProtectedServer
	Scopes        []oauth.Scope `set:"scopes" group:"Resource and scopes" unset:"mcp" example:"[articles:read = Read articles, articles:write articles:read = Change articles]" allowed:"scopes such as \"articles:write articles:read = Change articles\"" doc:"scopes that clients can request besides offline_access, each as \"name implied-name… = description\""`
	DefaultScopes []string      `set:"default-scopes" group:"Resource and scopes" unset:"the first of scopes" example:"[articles:read]" doc:"scopes for clients that request none"`

	ResourceSecret string // of ResourceServers

	Secret          []byte
	PreviousSecrets [][]byte
	Secrets         oauth.SecretKeeper
	AllowClient     func(host string) bool

	AutoErrorRedirect             bool     `set:"auto-error-redirect" group:"Clients" doc:"redirect errors to every host without a click"`
	AllowedPrivateSchemes         []string `set:"allowed-private-schemes" group:"Clients" example:"[cursor]" doc:"custom URL schemes of installed apps that are allowed as redirect URIs"`
	AllowDocumentsWithoutClientID bool     `set:"allow-documents-without-client-id" group:"Client metadata" doc:"accept metadata documents without a client_id"`
	SelfRegistration              bool     `set:"self-registration" group:"Clients" default:"true" unset:"on, unless allow-clients leaves them out" doc:"let clients without a metadata document register themselves (RFC 7591); nothing is stored for them"`
	ClientIDPorts                 []uint16 `set:"client-id-ports" group:"Client metadata" example:"['8443']" pattern:"^[1-9]" allowed:"ports from 1 to 65535" doc:"ports besides 443 that a client_id URL may have"`
	AllowLoopbackIssuer           bool
	AllowLoopbackClients          bool
	HostedClients                 []oauth.HostedClient

	Links  oauth.Links  `set:"links" group:"Pages" example:"[op_policy_uri = https://cms.example.com/privacy, op_tos_uri = https://cms.example.com/terms]" allowed:"links such as \"op_policy_uri = https://cms.example.com/privacy\"" doc:"web pages for the metadata (RFC 8414, RFC 9728) and the pages, each as \"name = URL\" with the name in the metadata: service_documentation, op_policy_uri, op_tos_uri, and resource_documentation, resource_policy_uri and resource_tos_uri of the MCP servers"`
	Limits oauth.Limits // those of the Config apply

	Now    func() time.Time
	Random io.Reader
	Logger *slog.Logger
}

// Limits is oauth.Limits with tags.
type Limits struct {
	UnlimitedNetworks    []netip.Prefix `set:"unlimited-networks" unset:"none" example:"[203.0.113.0/24]" allowed:"networks such as 10.0.0.0/8, or addresses" doc:"networks that are exempt from limits per address and from those of wrong tokens"`
	WrongTokens          int            `set:"wrong-tokens" default:"10" min:"1" doc:"different wrong tokens of a network (/24, IPv6 /56) in 5m before its tokens take turns, one a second"`
	MaxVerifications     int            `set:"max-verifications" default:"64" min:"1" doc:"concurrent checks of one verifier; a quarter is kept for refreshes"`
	MaxSessions          int            `set:"max-sessions" default:"10000" min:"1" doc:"open MCP sessions (in a gateway: streams) at one server per replica; a further one ends the longest-idle session of the person who has the most"`
	MaxSessionsPerPerson int            `set:"max-sessions-per-person" default:"100" min:"1" doc:"open MCP sessions of one person; a further one ends the longest-idle one"`
	MaxGrantsPerToken    int            `set:"max-grants-per-token" default:"100" min:"1" doc:"connections made with one token; a further one ends the least recently used one"`
	CallsPerMinute       int            `set:"calls-per-minute" default:"0" min:"0" doc:"tool calls that one person may make in 1m at one MCP server per replica; further calls get 429; 0 for no limit"`
}

// StoreSettings names the settings that locate the store.
var StoreSettings = []string{"data", "database", "server-secret"}

// SiteSettings names the settings that have no effect in a gateway.
var SiteSettings = []string{"demo-token"}

// GatewaySettings returns the names of the settings that have no effect without an upstream.
func GatewaySettings() []string { return DefaultConfig().Table().InGroup(gatewayGroup) }

// DefaultConfig returns the defaults that the command line shows.
func DefaultConfig() *Config {
	c := new(Config)
	c.Table() // sets them
	return c
}

// Table returns every setting of the program, grouped by topic. Table sets the zero fields of c to
// their defaults; reading the returned table sets the fields to the settings.
func (c *Config) Table() *settings.Table { return settings.NewTable(c, groups...) }

// ServerSettings names the settings that have no effect with an MCP server in this process.
var ServerSettings = []string{"resource-servers"}

// MCPSettings returns the names of the settings that need an MCP server in this process.
func MCPSettings() []string {
	table := DefaultConfig().Table()
	return slices.Concat(SiteSettings, table.InGroup(gatewayGroup), table.InGroup("Audit of calls"), []string{
		"advertise", "allowed-origins", "allowed-hosts", "max-request-body", "max-sessions", "max-sessions-per-person",
		"calls-per-minute", "resource", "resource-name", "accept-host-tokens",
	})
}

// authorization returns Authorization with the limits and the fields that other settings configure.
func (c Config) authorization() oauth.Config {
	config := oauth.Config(c.Authorization)
	config.Limits = oauth.Limits(c.Limits)
	for _, field := range c.Gateway.Fields {
		isSecret := field.Name == credential.Token || field.Name == "password"
		if field.Secret != nil {
			isSecret = *field.Secret
		}
		config.HostFields = append(config.HostFields, credential.Field{
			Name:     field.Name,
			Label:    field.Label,
			Help:     field.Help,
			Pattern:  field.Pattern,
			Default:  field.Default,
			Secret:   isSecret,
			Optional: field.Required != nil && !*field.Required,
		})
	}
	return config
}

// IsGateway reports whether the service is a gateway to other MCP servers instead of the demo site.
func (c Config) IsGateway() bool { return len(c.Gateway.Upstreams) > 0 }

// IsAlone reports whether the service is an authorization server without an MCP server.
func (c Config) IsAlone() bool { return len(c.ResourceServers) > 0 }

// IsSite reports whether the service is the demo site.
func (c Config) IsSite() bool { return !c.IsGateway() && !c.IsAlone() }

// Listen opens Addr. Call it before everything else, so that a second start fails without creating
// files.
func (c Config) Listen() (net.Listener, error) {
	return httpserver.Listen("--addr", c.Addr, DefaultAddr)
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
