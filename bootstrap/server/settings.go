package server

import (
	"github.com/pasteport/pasteport/bootstrap/settings"
)

// StoreSettings names the settings that locate the store.
var StoreSettings = []string{"data", "database", "database-file", "server-secret"}

// SiteSettings names the settings that have no effect in a gateway.
var SiteSettings = []string{"bus", "bus-file", "demo-token", "demo-token-file"}

// GatewaySettings returns the names of the settings that have no effect without an upstream.
func GatewaySettings() []string { return new(Config).gateway().Names() }

// Table returns every setting of the program, grouped by theme; reading it fills in c.
func (c *Config) Table() *settings.Table {
	return settings.NewTable(c.addresses(), c.replicas(), c.gateway(), c.verification(), c.tokens(), c.lifetimes(), c.clients(), c.metadata(),
		c.limits(), c.pages(), c.tls(), c.logging())
}

func (c *Config) addresses() settings.Group {
	return settings.Group{Title: "Service", Settings: []*settings.Setting{
		settings.URL("issuer", &c.Issuer, "public https URL, as clients see it, without a slash at its end; required").
			Otherwise("with dev, http:// and addr").Like("https://cms.example.com").Required(),
		settings.Text("addr", &c.Addr, "address to listen on, as host:port"),
		settings.Text("admin-addr", &c.AdminAddr, "address of the operator's own listener for /healthz, /readyz, /metrics and /debug/pprof/; off for none"),
		settings.Number("max-connections", &c.MaxConnections, "connections that are open at once, more wait; 0 follows the limits of memory and files").
			Like("5000"),
		settings.List("trusted-proxies", &c.TrustedProxies, networkItem, "networks of the proxies in front, whose X-Forwarded-For or Forwarded is believed").
			Otherwise("none").Like("127.0.0.1"),
		settings.Texts("allowed-origins", &c.AllowedOrigins, "origins of web pages that may call the MCP endpoints from a browser, each as scheme://host or scheme://host:port").
			Checks("WithAllowedOrigins").
			Otherwise("the issuer's own").Like("http://localhost:6274"),
		settings.Texts("allowed-hosts", &c.AllowedHosts, "with dev, names besides its own under which it answers, with any port or with the one given").
			Checks("WithAllowedHosts").
			Otherwise("the issuer's host and loopback; every name for a public issuer").Like("host.docker.internal"),
		settings.Size("max-request-body", &c.MaxRequestBody, "how long a message to an MCP server may be, 64KiB to 1GiB").Checks("MaxRequestBody"),
		settings.Folder("data", &c.DataDir, "folder for the databases"),
		settings.Switch("dev", &c.Development, "development: http on this computer, and client metadata from it").
			Checks("AllowLoopbackIssuer", "AllowLoopbackClients"),
		settings.Secret("demo-token", &c.EditorToken, "token of the demo site's editor; without one, the first start makes and prints one").
			Like("a-long-random-text"),
	}}
}

func (c *Config) verification() settings.Group {
	v := &c.Verification
	return settings.Group{Title: "Who knows the site's tokens", Settings: []*settings.Setting{
		settings.Choice("verifier", &v.Verifier, verifiers, "who is asked about a token that was pasted: the demo site, the upstream of a gateway, "+
			"a file of hashed tokens, a URL of the site, or an RFC 7662 introspection endpoint").Otherwise("upstream for a gateway, else site").Like(VerifierFile),
		settings.File("token-file", &v.TokenFile, "file of hashed tokens, made with \"pasteport hash-token\"; a change counts at once").Like("/etc/pasteport/tokens"),
		settings.URL("verify-url", &v.VerifyURL, "URL that answers a GET with the token as bearer: 2xx if it holds, 401 or 403 if not").Keyed().Like("https://cms.example.com/token"),
		settings.URL("introspection-url", &v.IntrospectionURL, "introspection endpoint").Keyed().Like("https://login.example.com/introspect"),
		settings.Text("introspection-client-id", &v.IntrospectionClientID, "who asks the introspection endpoint").Like("pasteport"),
		settings.Secret("introspection-client-secret", &v.IntrospectionClientSecret, "secret of introspection-client-id").Like("a-long-random-text"),
		settings.Switch("introspection-scopes", &v.IntrospectionScopes, "take the scope of an introspected token for the most that it may grant"),
		settings.Switch("verify-over-http", &v.VerifyOverHTTP, "let verify-url and introspection-url be http, on this computer and private networks only"),
	}}
}

func (c *Config) tokens() settings.Group {
	return settings.Group{Title: "What tokens open", Settings: []*settings.Setting{
		settings.URL("resource", &c.Resource, "URL of the MCP server").Otherwise("issuer and /mcp, or the path of the first upstream").Like("https://cms.example.com/mcp"),
		settings.Text("resource-name", &c.ResourceName, "what people read as the name of the MCP server").
			Otherwise("the issuer's host; Demo site without upstream").Like("The Gazette's articles"),
		settings.List("scopes", &c.Scopes, scopeItem, "scopes that clients can ask for besides offline_access, "+
			"each as \"name implied-name… = what it allows\"").Otherwise("mcp").
			Like("articles:read = Read articles", "articles:write articles:read = Change articles"),
		settings.Texts("default-scopes", &c.DefaultScopes, "scopes for clients that ask for none").Otherwise("the first of scopes").Like("articles:read"),
	}}
}

func (c *Config) lifetimes() settings.Group {
	return settings.Group{Title: "How long things live", Settings: []*settings.Setting{
		settings.Duration("access-token-ttl", &c.AccessTokenTTL, "how long an access token lives, 1m to 24h"),
		settings.Duration("auth-code-ttl", &c.AuthCodeTTL, "how long an authorization code lives, 10s to 10m"),
		settings.Duration("refresh-idle-ttl", &c.RefreshIdleTTL, "a grant that is not refreshed for this long ends; at least 1h and access-token-ttl, at most 8760h"),
		settings.Duration("grant-ttl", &c.GrantTTL, "every grant ends after this, 1h to 8760h"),
		settings.DurationOrOff("refresh-grace", &c.RefreshGrace, "a replaced refresh token is answered with its successor for this long, at most 5m; 0 is off"),
		settings.Duration("ticket-ttl", &c.TicketTTL, "how long a consent page can be answered, 1m to 30m"),
		settings.Duration("recheck-every", &c.RecheckEvery, "ask the site about tokens during use, at most this often, from 1m; 0 asks at refreshes only"),
	}}
}

func (c *Config) clients() settings.Group {
	return settings.Group{Title: "Which clients may connect", Settings: []*settings.Setting{
		settings.List("allow-clients", &c.AllowClients, hostItem, "hosts of the clients that may connect").Otherwise("every client").Like("claude.ai"),
		settings.Switch("private-key-jwt", &c.PrivateKeyJWT, "offer clients to prove by signed assertions who they are"),
		settings.Texts("trusted-redirect-hosts", &c.TrustedRedirectHosts, "hosts to which an error is redirected without a click").Like("claude.ai"),
		settings.Switch("auto-error-redirect", &c.AutoErrorRedirect, "redirect errors to every host without a click"),
		settings.Texts("allowed-private-schemes", &c.AllowedPrivateSchemes, "redirect schemes of installed apps").Like("cursor"),
	}}
}

func (c *Config) metadata() settings.Group {
	return settings.Group{Title: "How client metadata is fetched", Settings: []*settings.Setting{
		settings.Texts("client-id-ports", &c.ClientIDPorts, "ports besides 443 that a client_id may name").Like("8443"),
		settings.Switch("allow-documents-without-client-id", &c.AllowDocumentsWithoutClientID, "accept clients whose metadata does not name itself"),
		settings.Switch("allow-any-content-type", &c.AllowAnyContentType, "accept metadata documents that are not served as JSON"),
		settings.List("denied-prefixes", &c.DeniedPrefixes, networkItem, "further networks from which metadata is never fetched").Like("192.0.2.0/24"),
		settings.Secret("metadata-proxy", &c.MetadataProxy, "http:// or https:// URL of the proxy through which metadata is fetched, where there is no other way out").
			Like("http://pasteport:a-long-random-text@proxy.internal:3128"),
		settings.Switch("allow-nat64", &c.AllowNAT64, "let metadata hosts be reached through NAT64"),
	}}
}

func (c *Config) pages() settings.Group {
	return settings.Group{Title: "What people see", Settings: []*settings.Setting{
		settings.Text("site-name", &c.Appearance.Name, "what the pages call the site, at most 60 characters").
			Checks("Appearance.Name").Otherwise("the issuer's host").Like("The Gazette"),
		settings.Text("accent", &c.Appearance.Accent, "colour of buttons and links; it is made darker or lighter until everybody can read it").
			Checks("Appearance.Accent").Otherwise(defaultAccent).Like("#7c2d12").
			Matching("^(#([0-9a-fA-F]{3}){1,2})?$"),
		settings.File("logo", &c.LogoFile, "file with the site's logo: PNG, JPEG, WebP or SVG of at most 12 KiB").Checks("Appearance.Logo").Like("logo.svg"),
		settings.URL("token-help", &c.Appearance.TokenHelp, "address of the page on which people find their token").
			Checks("Appearance.TokenHelp").Like("https://cms.example.com/account/tokens"),
	}}
}

func (c *Config) logging() settings.Group {
	return settings.Group{Title: "Log", Settings: []*settings.Setting{
		settings.Choice("log-format", &c.LogFormat, []string{"text", "json"}, "how log lines look"),
		settings.Choice("log-level", &c.LogLevel, []string{"debug", "info", "warn", "error"}, "the least level that is logged"),
	}}
}

func (c *Config) limits() settings.Group {
	l := &c.Limits
	return settings.Group{Title: "Limits", Settings: []*settings.Setting{
		settings.Switch("weak-tokens", &l.WeakTokens, "for tokens of less than 64 bits: refuse all tokens from addresses, and on pages, with too many wrong ones"),
		settings.List("unlimited-networks", &l.UnlimitedNetworks, networkItem, "networks to which no limit by address applies").Otherwise("none").Like("203.0.113.0/24"),
		settings.Number("max-wrong-tokens-per-address", &l.MaxWrongTokensPerAddress, "wrong tokens of an IPv4 address or an IPv6 /64 in 5m, before each further one needs a proof of work"),
		settings.Number("max-wrong-tokens-per-network", &l.MaxWrongTokensPerNetwork, "the same for a /24 or an IPv6 /56"),
		settings.Number("max-wrong-tokens-per-prefix48", &l.MaxWrongTokensPerPrefix48, "the same for an IPv6 /48"),
		settings.Number("max-wrong-tokens", &l.MaxWrongTokens, "wrong tokens of all addresses in 1m, before tokens from unknown addresses need a proof of work"),
		settings.Number("max-attempts-per-token", &l.MaxAttemptsPerToken, "attempts in 1m with a token that has living connections, before it needs a proof of work"),
		settings.Number("proof-bits", &l.ProofBits, "difficulty of a proof of work; each bit doubles it, at most 16"),
		settings.Duration("proof-wait", &l.ProofWait, "how long browsers without script wait instead, at most 1m; ten from one address get in within that time"),
		settings.Number("max-verifications", &l.MaxVerifications, "tokens that one verifier checks at once"),
		settings.Number("max-verifications-per-address", &l.MaxVerificationsPerAddress, "how many of them may be from one address"),
		settings.Number("max-fetches", &l.MaxFetches, "metadata documents that are fetched at once"),
		settings.Number("max-fetches-per-address", &l.MaxFetchesPerAddress, "how many of them one address may cause"),
		settings.Number("max-fetches-per-domain", &l.MaxFetchesPerDomain, "how many of them may be from one registrable domain"),
		settings.Number("max-fetches-per-minute-and-address", &l.MaxFetchesPerMinuteAndAddress, "unknown metadata documents that one address may cause to be fetched in 1m; beyond that, three from each registrable domain"),
		settings.Number("max-fetches-per-minute-and-domain", &l.MaxFetchesPerMinuteAndDomain, "unknown metadata documents that are fetched from one registrable domain in 1m; above that, only networks that have used less than their share may fetch"),
		settings.Number("max-unknown-tokens-per-minute", &l.MaxUnknownTokensPerMinute, "unknown codes and refresh tokens that one address may send in 1m"),
		settings.Number("max-sessions", &l.MaxSessions, "open MCP sessions of one server in each replica; one more ends the idlest session of the person with most"),
		settings.Number("max-sessions-per-person", &l.MaxSessionsPerPerson, "how many of them one person may have; one more ends their idlest session"),
		settings.Number("max-grants-per-token", &l.MaxGrantsPerToken, "connections made with one token; one more ends the one that was unused for longest"),
	}}
}
