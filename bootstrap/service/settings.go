package service

import (
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// StoreSettings names the settings that locate the store.
var StoreSettings = []string{"data", "database", "server-secret"}

// SiteSettings names the settings that have no effect in a gateway.
var SiteSettings = []string{"demo-token"}

// GatewaySettings returns the names of the settings that have no effect without an upstream.
func GatewaySettings() []string { return new(Config).gateway().Names() }

// otherNames are those of options and of fields that follow from a setting.
var otherNames = map[oauth.Field]oauth.Field{
	"AllowLoopbackClients": "Development",
	"AllowLoopbackIssuer":  "Development",
	"Appearance.Logo":      "LogoFile",
	"MoreServers":          "Gateway.Upstreams",
	"WithClientDocuments":  "ClientDocuments",
	"WithMetadata.Proxy":   "Metadata.Proxy",
}

// Table returns every setting of the program, grouped by topic; reading it fills in c.
func (c *Config) Table() *settings.Table {
	return settings.NewTable(c, otherNames, c.addresses(), c.replicas(), c.gateway(), c.verification(), c.tokens(),
		c.lifetimes(),
		c.clients(), c.metadata(),
		c.limits(), c.pages(), c.tls(), c.logging(), c.audit())
}

func (c *Config) addresses() settings.Group {
	return settings.Group{Title: "Service", Settings: []*settings.Setting{
		settings.URL("issuer", &c.Issuer, "public https URL of the service, without a trailing slash; required").
			DefaultText("http:// followed by addr if dev is set").Example("https://cms.example.com"),
		settings.Text("addr", &c.Addr, "address to listen on, as host:port"),
		settings.Text("admin-addr", &c.AdminAddr,
			"address of the admin listener with /, /grants, /healthz, /readyz, /metrics and /debug/pprof/; "+
				"off disables it"),
		settings.Number("max-connections", &c.MaxConnections,
			"maximum number of open connections; further ones wait; 0 derives it from the memory and file limits").
			Example("5000"),
		settings.List("trusted-proxies", &c.TrustedProxies, networkItem,
			"networks of reverse proxies whose X-Forwarded-For or Forwarded header is trusted").
			DefaultText("none").Example("127.0.0.1"),
		settings.Texts("allowed-origins", &c.AllowedOrigins,
			"origins of web pages that may call the MCP endpoints from a browser, each as scheme://host or "+
				"scheme://host:port; loopback allows those of localhost, 127.0.0.1 and [::1], for development").
			DefaultText("the issuer's own").Example("http://localhost:6274"),
		settings.Texts("allowed-hosts", &c.AllowedHosts,
			"with dev: additional Host names that are accepted, with any port or with the given one").
			DefaultText("the issuer's host and loopback; with a public issuer, any name").
			Example("host.docker.internal"),
		settings.Size("max-request-body", &c.MaxRequestBody,
			"maximum size of a message to an MCP server, "+settings.FormatSize(guard.LeastRequestBody)+" to "+
				settings.FormatSize(guard.MostRequestBody)),
		settings.Folder("data", &c.DataDir, "folder for the databases"),
		settings.Switch("dev", &c.Development, "development mode, for this computer: allows http and client metadata "+
			"on loopback, and publishes client documents for local clients and doctor"),
		settings.Secret("demo-token", &c.EditorToken,
			"token of the demo site's editor; if empty, the first start generates and prints one"),
	}}
}

func (c *Config) verification() settings.Group {
	v := &c.Verification
	return settings.Group{Title: "Token verification", Settings: []*settings.Setting{
		settings.Choice("verifier", &v.Verifier, verifiers,
			"how pasted tokens are verified: by the demo site, the upstream of a gateway, "+
				"a file of hashed tokens, a URL of the site, or an RFC 7662 introspection endpoint").
			DefaultText("upstream in a gateway, else site").Example(VerifierFile),
		settings.File("token-file", &v.TokenFile,
			"file of hashed tokens from \"pasteport hash-token\"; changes take effect immediately").
			Example("/etc/pasteport/tokens"),
		settings.URL("verify-url", &v.VerifyURL,
			"URL for a GET with the token as bearer token: 2xx means valid, 401 or 403 invalid").HideQuery().
			Example("https://cms.example.com/token"),
		settings.URL("introspection-url", &v.IntrospectionURL, "URL of the introspection endpoint (RFC 7662)").
			HideQuery().Example("https://login.example.com/introspect"),
		settings.Text("introspection-client-id", &v.IntrospectionClientID, "client id for the introspection endpoint").
			Example("pasteport"),
		settings.Secret("introspection-client-secret", &v.IntrospectionClientSecret,
			"client secret for the introspection endpoint"),
		settings.Switch("introspection-scopes", &v.IntrospectionScopes,
			"limit what people can grant with a token to the scopes in the introspection response"),
		settings.Switch("accept-host-tokens", &c.AcceptHostTokens, "accept the site's own tokens at the MCP endpoint, "+
			"in the Authorization header or the one in present, for clients that cannot log in with OAuth"),
	}}
}

func (c *Config) tokens() settings.Group {
	return settings.Group{Title: "Resource and scopes", Settings: []*settings.Setting{
		settings.URL("resource", &c.Resource, "URL of the MCP server").
			DefaultText("the issuer followed by /mcp or the path of the first upstream").
			Example("https://cms.example.com/mcp"),
		settings.Text("resource-name", &c.ResourceName,
			"name of the MCP server on the pages; with several upstreams, the path of each is appended").
			DefaultText("site-name").Example("The Gazette's articles"),
		settings.List("scopes", &c.Scopes, scopeItem, "scopes that clients can request besides offline_access, "+
			"each as \"name implied-name… = description\"").DefaultText("mcp").
			Example("articles:read = Read articles", "articles:write articles:read = Change articles"),
		settings.Texts("default-scopes", &c.DefaultScopes, "scopes for clients that request none").
			DefaultText("the first of scopes").Example("articles:read"),
	}}
}

func (c *Config) lifetimes() settings.Group {
	return settings.Group{Title: "Lifetimes", Settings: []*settings.Setting{
		c.lifetime("access-token-ttl", &c.AccessTokenTTL, "lifetime of an access token"),
		c.lifetime("auth-code-ttl", &c.AuthCodeTTL, "lifetime of an authorization code"),
		c.lifetime("refresh-idle-ttl", &c.RefreshIdleTTL,
			"a grant ends after this time without a refresh; at least access-token-ttl"),
		c.lifetime("grant-ttl", &c.GrantTTL, "maximum lifetime of a grant"),
		settings.List("grant-choices", &c.GrantChoices, durationItem,
			"lifetimes of a grant that people choose from on the consent page, 1h to grant-ttl, the longest as the "+
				"default").DefaultText("grant-ttl alone").Example("1h", "24h", "168h", "720h"),
		settings.Choice("refresh-tokens", &c.RefreshTokens, []string{oauth.RefreshRequested, oauth.RefreshRegistered},
			"which clients get refresh tokens: those that request offline_access, or also those that only declare "+
				"the grant type refresh_token"),
		c.lifetime("refresh-grace", &c.RefreshGrace,
			"time for which each of the last four replaced refresh tokens still returns the newest tokens; the last "+
				"one does so longer while these are unused"),
		c.lifetime("recheck-every", &c.RecheckEvery,
			"interval at which the pasted token is verified again while its grant is in use, in addition to each "+
				"refresh").DefaultText("5m with verifier file, http or introspection, else 0s"),
	}}
}

// lifetime adds the bounds of a duration to its description.
func (c *Config) lifetime(name string, target *time.Duration, doc string) *settings.Setting {
	lifetimes := c.Lifetimes()
	l := lifetimes[slices.IndexFunc(lifetimes, func(l oauth.Lifetime) bool { return l.Value == target })]
	doc += ", " + settings.FormatDuration(l.Least) + " to " + settings.FormatDuration(l.Most)
	if l.MayBeOff {
		return settings.DurationOrOff(name, target, doc+"; 0 turns it off")
	}
	return settings.Duration(name, target, doc)
}

func (c *Config) clients() settings.Group {
	return settings.Group{Title: "Clients", Settings: []*settings.Setting{
		settings.List("allow-clients", &c.AllowClients, hostItem,
			"hosts of the clients that may connect; self-registered stands for all clients that registered "+
				"themselves; existing connections continue").
			DefaultText("every client").Example("claude.ai"),
		settings.Switch("self-registration", &c.SelfRegistration,
			"let clients without a metadata document register themselves (RFC 7591); nothing is stored for them").
			DefaultText("on, unless allow-clients leaves them out"),
		settings.Switch("doctor-client", &c.DoctorClient,
			"publish a client document for \"pasteport doctor\", so that it can check a whole login").
			DefaultText("off; on with dev"),
		settings.Switch("auto-error-redirect", &c.AutoErrorRedirect, "redirect errors to every host without a click"),
		settings.Texts("allowed-private-schemes", &c.AllowedPrivateSchemes,
			"custom URL schemes of installed apps that are allowed as redirect URIs").Example("cursor"),
	}}
}

func (c *Config) metadata() settings.Group {
	return settings.Group{Title: "Client metadata", Settings: []*settings.Setting{
		settings.List("client-id-ports", &c.ClientIDPorts, portItem, "ports besides 443 that a client_id URL may have").
			Example("8443"),
		settings.Folder("client-documents", &c.ClientDocuments,
			"folder of metadata documents, one in each .json file, that are used without a fetch; read again when a "+
				"file changes").DefaultText("none").Example("/etc/pasteport/clients"),
		settings.Switch("allow-documents-without-client-id", &c.AllowDocumentsWithoutClientID,
			"accept metadata documents without a client_id"),
		settings.SecretURL("metadata-proxy", &c.Metadata.Proxy,
			"http:// or https:// URL of the proxy for fetching metadata, if there is no direct internet access"),
	}}
}

func (c *Config) pages() settings.Group {
	return settings.Group{Title: "Pages", Settings: []*settings.Setting{
		settings.Text("site-name", &c.Appearance.Name, "name of the site on the pages, at most 60 characters").
			DefaultText("the issuer's host; without an upstream, \"Demo site\"").
			Example("The Gazette"),
		settings.Text("accent", &c.Appearance.Accent, "colour of buttons and links; adjusted to a readable contrast").
			DefaultText(defaultAccent).Example("#7c2d12").
			Pattern("^(#([0-9a-fA-F]{3}){1,2})?$"),
		settings.File("logo", &c.LogoFile, "file with the site's logo: PNG, JPEG, WebP or SVG of at most 12 KiB").
			Example("logo.svg"),
		settings.URL("token-help", &c.Appearance.TokenHelp, "URL of the page where people find their token").
			Example("https://cms.example.com/account/tokens"),
		settings.Choice("credential-word", &c.Appearance.CredentialWord, []string{pages.WordToken, pages.WordKey},
			"what the pages call the site's credential: token or key").
			DefaultText(pages.WordToken).Example(pages.WordKey),
		settings.List("links", (*[]oauth.Link)(&c.Links), linkItem,
			"web pages for the metadata (RFC 8414, RFC 9728) and the pages, each as \"name = URL\" with the name in "+
				"the metadata: service_documentation, op_policy_uri, op_tos_uri, and resource_documentation, "+
				"resource_policy_uri and resource_tos_uri of the MCP servers").
			Example("op_policy_uri = https://cms.example.com/privacy", "op_tos_uri = https://cms.example.com/terms"),
		settings.Folder("well-known-files", &c.WellKnownFiles, "folder of files of at most 1 MiB that are served "+
			"below /.well-known/, such as security.txt and openai-apps-challenge, besides the service's own documents").
			DefaultText("none").Example("/etc/pasteport/well-known"),
	}}
}

func (c *Config) logging() settings.Group {
	return settings.Group{Title: "Logging", Settings: []*settings.Setting{
		settings.Choice("log-format", &c.LogFormat, []string{"text", LogJSON},
			"format of log lines, and of what serve and gateway print at startup"),
		settings.Choice("log-level", &c.LogLevel, []string{"debug", "info", "warn", "error"},
			"minimum level of log lines"),
	}}
}

func (c *Config) limits() settings.Group {
	l := &c.Limits
	return settings.Group{Title: "Limits", Settings: []*settings.Setting{
		settings.List("unlimited-networks", &l.UnlimitedNetworks, networkItem,
			"networks that are exempt from limits per address and from those of wrong tokens").
			DefaultText("none").Example("203.0.113.0/24"),
		settings.Number("wrong-tokens", &l.WrongTokens, "different wrong tokens of a network (/24, IPv6 /56) in 5m "+
			"before its tokens take turns, one a second"),
		settings.Number("max-verifications", &l.MaxVerifications,
			"concurrent checks of one verifier; a quarter is kept for refreshes"),
		settings.Number("max-sessions", &l.MaxSessions, "open MCP sessions (in a gateway: streams) at one server per "+
			"replica; a further one ends the longest-idle session of the person who has the most"),
		settings.Number("max-sessions-per-person", &l.MaxSessionsPerPerson,
			"open MCP sessions of one person; a further one ends the longest-idle one"),
		settings.Number("max-grants-per-token", &l.MaxGrantsPerToken,
			"connections made with one token; a further one ends the least recently used one"),
		settings.Number("calls-per-minute", &l.CallsPerMinute, "tool calls that one person may make in 1m at one MCP "+
			"server per replica; further calls get 429; 0 for no limit"),
	}}
}
