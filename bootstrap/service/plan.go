package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	oauthhttp "github.com/pasteport/pasteport/adapters/http"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/adapters/mcp/peers"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/uri"
)

// Plan is a checked Config, with the values that its texts and files describe.
type Plan struct {
	Config                           // whose issuer is empty if it depends on the address to listen on
	verifiers []oauth.BearerVerifier // one for each upstream, or one for all servers; none for the demo site
	reach     gateway.Reach
	policy    []bootstrap.MCPOption
	tls       *tls.Config // nil for plain HTTP
}

// namingRoles are the verifiers that can take a role or a scope away from a token. With them,
// tokens in use are verified at recheckEvery, unless the operator sets another interval.
var namingRoles = []string{VerifierFile, VerifierHTTP, VerifierIntrospection}

const recheckEvery = 5 * time.Minute

// Load reads the settings of c's table and plans the service, which logs to log. It reports every
// mistake at once, before anything is opened. The additional checks run after the settings are
// read.
func (c *Config) Load(table *settings.Table, log io.Writer, checks ...func(Config) error) (*Plan, error) {
	err := table.Read()
	if table.Unread {
		return nil, table.Explain(err)
	}
	if !table.Given("doctor-client") {
		c.DoctorClient = c.Development
	}
	if !table.Given("self-registration") { // a list of clients may leave them out
		c.SelfRegistration = len(c.AllowClients) == 0 || slices.Contains(c.AllowClients, oauth.SelfRegistered)
	}
	if !table.Given("recheck-every") && slices.Contains(namingRoles, c.verifier()) {
		c.RecheckEvery = recheckEvery
	}
	c.Logger = c.NewLogger(log)
	mistakes := []error{err, checkAddress("addr", c.Addr, DefaultAddr)}
	// unused refuses settings. The reason follows "is set, but".
	unused := func(reason string, names ...string) { mistakes = append(mistakes, table.Refuse(reason, names...)) }
	switch {
	case c.IsAlone():
		unused("the MCP servers of resource-servers are elsewhere: leave it out", MCPSettings()...)
		if !slices.ContainsFunc(c.ResourceServers, func(s ResourceServer) bool { return len(s.Scopes) == 0 }) {
			unused("each of resource-servers has scopes of its own: leave it out", "scopes", "default-scopes")
		}
	case !c.IsGateway():
		unused("upstream is not: leave it out, or name the MCP server behind the gateway", GatewaySettings()...)
	case !c.Gateway.hasURL():
		unused("has no effect on a program: leave it out", "upstream-ca", "upstream-cert", "upstream-key",
			"upstream-proxy", "upstream-host", "present", "forward-headers", "forward-parameters", "signing-secret")
	}
	if err := demosite.CheckToken(c.EditorToken); err != nil {
		mistakes = append(mistakes, mistaken("demo-token", "is invalid", err))
	} else {
		field := verifierField{name: "demo-token", isSet: c.EditorToken != "", verifier: VerifierSite}
		mistakes = append(mistakes, field.check(c.verifier()))
	}
	if c.AdminAddr != "" && c.AdminAddr != AdminOff {
		mistakes = append(mistakes, checkAddress("admin-addr", c.AdminAddr, DefaultAdminAddr+", or "+AdminOff))
	}
	plan, wrong := c.Plan()
	mistakes = append(mistakes, wrong)
	for _, check := range checks {
		if err == nil { // else what seems to be missing may be what cannot be read
			mistakes = append(mistakes, check(*c))
		}
	}
	return plan, table.Explain(errors.Join(mistakes...))
}

// Plan reads what the configuration names and reports every mistake, before any file is created.
func (c Config) Plan() (*Plan, error) {
	c.Logger = bootstrap.MaskTokens(slog.New(requestLog{cmp.Or(c.Logger, slog.Default()).Handler()}))
	if c.Now == nil {
		c.Now = time.Now
	}
	p := &Plan{Config: c}
	var wrongLogo, wrongTLS, wrongReach, wrongVerifiers, wrongPolicy error
	if c.LogoFile != "" {
		p.Appearance.Logo, wrongLogo = settings.ReadFile(c.LogoFile, logoLimit)
	}
	p.tls, wrongTLS = c.TLS.load(c)
	if c.Gateway.hasURL() {
		p.reach, wrongReach = c.Gateway.Connect.reach(c)
	}
	p.verifiers, wrongVerifiers = c.verifiers(p.reach)
	if c.IsGateway() {
		scopes := c.authorization().ProtectedResources()[0].Scopes
		p.policy, wrongPolicy = c.Gateway.Policy.options(scopes, c.verifier() != VerifierUpstream)
	}
	complete := *p // with an issuer, only for check
	if addr, err := net.ResolveTCPAddr("tcp", c.Addr); err == nil && c.Issuer == "" && c.Development &&
		addr.IP.IsLoopback() {
		complete.Issuer = c.LocalIssuer(addr)
	}
	return p, errors.Join(mistaken("logo", "cannot be read", wrongLogo), wrongTLS, wrongReach, wrongVerifiers,
		wrongPolicy, complete.check())
}

// check reports the mistakes that Config.Plan does not find while it reads files and texts.
func (p *Plan) check() error {
	var noIssuer error
	if p.Issuer == "" {
		noIssuer = errors.New("the issuer, the public https URL of this service, is missing: add --issuer https://…, " +
			"or --dev and a loopback --addr to try it on this computer")
	}
	config, wrongServers := p.oauth()
	wrong := config.Check()
	_, wrongClients := client.NewRules(config)
	if p.IsAlone() {
		nameServers(wrong)
	}
	mistakes := []error{noIssuer, wrongServers, wrong, wrongClients, p.Appearance.Check(),
		p.Gateway.check(config, p.verifier()), p.Database.check(), p.Metadata.Check(),
		p.checkSelfRegistration(), p.Audit.check(p.LogLevel), guard.Options{
			AllowedOrigins: p.AllowedOrigins,
			AllowedHosts:   p.AllowedHosts,
			MaxRequestBody: p.MaxRequestBody,
		}.Check()}
	if len(p.AllowedHosts) > 0 && p.Issuer != "" && !p.authorization().HasLoopbackIssuer() {
		mistakes = append(mistakes, oauth.NewMistake("allowed-hosts",
			"is set, but a server with a public issuer accepts every Host: leave it out"))
	}
	for _, network := range p.TrustedProxies {
		if network.Bits() == 0 { // any client would be a trusted proxy, and could claim any address
			mistakes = append(mistakes, oauth.NewMistake("trusted-proxies", "has %s, which covers every address: name "+
				"the networks of your own proxies", network))
		}
	}
	if err := peers.Check(p.Advertise); p.Advertise != "" && err != nil {
		mistakes = append(mistakes, oauth.NewMistake("advertise", "is %q: %w", p.Advertise, err))
	}
	if _, err := p.NewClientProbe(); err == nil { // else the other checks have reported it
		_, err = p.PinnedClients(context.Background())
		mistakes = append(mistakes, err)
	}
	if p.WellKnownFiles != "" {
		err := oauthhttp.CheckWellKnownFiles(p.WellKnownFiles)
		mistakes = append(mistakes, mistaken("well-known-files", "cannot be served", err))
	}
	return errors.Join(mistakes...)
}

// mistaken returns a Mistake whose text is the setting, the verb, which may be "", and the error.
// It returns nil if err is nil.
func mistaken(setting, verb string, err error) error {
	if err == nil {
		return nil
	}
	return oauth.NewMistake(setting, verb+": %w", err)
}

// oauth returns the config of the OAuth server, and the mistakes in the secrets of MCP servers
// elsewhere.
func (p *Plan) oauth() (oauth.Config, error) {
	config, err := p.resourceServers(p.Gateway.resources(p.authorization()))
	for i, verifier := range p.verifiers {
		if i == 0 { // for Resource; the others are for MoreServers, in the order of the upstreams
			config.Verifier = verifier
			continue
		}
		config.MoreServers[i-1].Verifier = verifier
	}
	config.AllowLoopbackIssuer, config.AllowLoopbackClients = p.Development, p.Development
	config.HostedClients = slices.Clone(config.HostedClients)
	if p.Development {
		config.HostedClients = append(config.HostedClients, localClient)
	}
	if p.DoctorClient {
		config.HostedClients = append(config.HostedClients, DoctorClient)
	}
	if len(p.AllowClients) > 0 {
		config.AllowClient = p.Allows
	}
	return config, err
}

func checkAddress(name, address, example string) error {
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return oauth.NewMistake(name, "is %q, which is not a valid address: write host:port, for example %s", address,
			example)
	}
	return nil
}

// LocalIssuer returns the issuer of a service that only this computer can reach, with the port of
// the listener. It keeps the name localhost of Addr, because clients compare URLs as text.
func (c Config) LocalIssuer(listener net.Addr) string {
	authority := listener.String()
	_, port, err := net.SplitHostPort(authority)
	if name, _, _ := net.SplitHostPort(c.Addr); err == nil && strings.EqualFold(name, "localhost") {
		authority = net.JoinHostPort("localhost", port)
	}
	if c.TLS.CertFile != "" {
		return "https://" + authority
	}
	return "http://" + authority
}

// Resolve fills in the settings that depend on others. The issuer stays empty if the system chooses
// the port.
func (c *Config) Resolve() {
	given := c.Resource
	if addr, err := net.ResolveTCPAddr("tcp", c.Addr); c.Issuer == "" && err == nil && addr.Port != 0 {
		c.Issuer = c.LocalIssuer(addr)
	}
	c.Verification.Verifier = c.verifier()
	c.Appearance.Name = c.siteName()
	if issuer, err := url.Parse(c.Issuer); err == nil {
		c.Appearance.Name = cmp.Or(c.Appearance.Name, issuer.Host)
	}
	config, _ := c.resourceServers(c.Gateway.resources(c.authorization())) // Plan reports the mistakes
	config = config.WithDefaults().NamedAfter(c.Appearance.Name)
	if !c.IsAlone() {
		c.Resource, c.ResourceName = config.Resource, config.ResourceName
	}
	common := c.authorization().WithDefaults() // config has the scopes of the first of the ResourceServers
	c.Scopes, c.DefaultScopes = common.Scopes, common.DefaultScopes
	if c.Issuer == "" { // the default would have no host
		c.Resource = given
	}
	c.Appearance.Accent = cmp.Or(c.Appearance.Accent, defaultAccent)
}

// GrantSettings returns what a command needs to find the grants in the store of a service, and to
// register clients. The command may run without the upstreams and names that its service has.
func (c Config) GrantSettings(store oauth.SecretKeeper) *oauth.Settings {
	mayBeGateway := c.IsSite() && c.Appearance.Name == "" && c.ResourceName == ""
	c.Resolve()
	if mayBeGateway { // else the grants of a gateway would have the name of the demo site
		c.ResourceName = c.Resource
	}
	config, _ := c.resourceServers(c.Gateway.resources(c.authorization()))
	if len(c.AllowClients) > 0 {
		config.AllowClient = c.Allows
	}
	if c.verifier() == VerifierUpstream {
		config.Verifier = new(check.Verifier) // a FieldsVerifier, so that all required fields identify a grant
	}
	config.Secrets = store
	return config.GrantSettings()
}

// siteName returns the name of the site on the pages, or "" for the host of the issuer. Only the
// demo site has a default name.
func (c Config) siteName() string {
	if c.IsSite() {
		return cmp.Or(c.Appearance.Name, DemoName)
	}
	return c.Appearance.Name
}

// checkSelfRegistration refuses settings under which clients register themselves and cannot
// connect, or are allowed and cannot register.
func (c Config) checkSelfRegistration() error {
	listed := slices.Contains(c.AllowClients, oauth.SelfRegistered)
	switch {
	case c.SelfRegistration && len(c.AllowClients) > 0 && !listed:
		return oauth.NewMistake("self-registration", "is on, but allow-clients does not list %s: add it, or leave "+
			"self-registration out", oauth.SelfRegistered)
	case listed && !c.SelfRegistration:
		return oauth.NewMistake("allow-clients", "lists %s, but self-registration is off: switch it on, or leave the "+
			"word out", oauth.SelfRegistered)
	}
	return nil
}

// Allows reports whether allow-clients lists the client's host. It ignores the port, which
// client-id-ports decides.
func (c Config) Allows(host string) bool {
	return slices.ContainsFunc(c.AllowClients, func(allowed string) bool {
		return strings.EqualFold(allowed, uri.HostOf(host))
	})
}
