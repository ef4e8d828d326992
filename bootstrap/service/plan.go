package service

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/cimd"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Plan is a Config without mistakes, with what its texts and files describe. Open opens the
// service.
type Plan struct {
	Config                           // whose issuer is empty if it depends on the address to listen on
	verifiers []oauth.BearerVerifier // of the upstreams; or one for all servers, nil for the demo site
	reach     gateway.Reach
	policy    []bootstrap.MCPOption
	tls       *tls.Config // nil for plain HTTP
}

// namingRoles are the verifiers that can take away a role or a scope. With them, tokens in use are
// verified at recheckEvery, unless the operator sets another interval.
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
	mistakes := []error{err, c.unused(table), checkAddress("addr", c.Addr, DefaultAddr), c.checkDemoToken()}
	if c.AdminAddr != "" && c.AdminAddr != AdminOff {
		mistakes = append(mistakes, checkAddress("admin-addr", c.AdminAddr, DefaultAdminAddr+", or "+AdminOff))
	}
	plan, err := c.Plan()
	mistakes = append(mistakes, err)
	for _, check := range checks {
		mistakes = append(mistakes, check(*c))
	}
	return plan, table.Explain(errors.Join(mistakes...))
}

// unused reports settings that have no effect on this kind of service.
func (c Config) unused(table *settings.Table) error {
	shares := func(server ResourceServer) bool { return len(server.Scopes) == 0 }
	var err error
	switch {
	case c.IsAlone():
		err = table.Refuse("the MCP servers of resource-servers are elsewhere: leave it out", MCPSettings()...)
		if !slices.ContainsFunc(c.ResourceServers, shares) {
			err = errors.Join(err, table.Refuse("each of resource-servers has scopes of its own: leave it out",
				"scopes", "default-scopes"))
		}
	case !c.IsGateway():
		err = table.Refuse("upstream is not: leave it out, or name the MCP server behind the gateway",
			GatewaySettings()...)
	case !c.Gateway.hasURL():
		err = table.Refuse("has no effect on a program: leave it out", "upstream-ca", "upstream-cert", "upstream-key",
			"upstream-proxy", "upstream-host", "present", "forward-headers", "forward-parameters", "signing-secret")
	}
	return err
}

// Plan reads what the configuration names and reports every mistake, before any file is created.
func (c Config) Plan() (*Plan, error) {
	c.Logger = bootstrap.MaskTokens(slog.New(requestLog{cmp.Or(c.Logger, slog.Default()).Handler()}))
	if c.Now == nil {
		c.Now = time.Now
	}
	p := &Plan{Config: c}
	mistakes := make([]error, 5)
	mistakes[0] = p.readLogo()
	p.tls, mistakes[1] = c.TLS.open(c)
	if c.Gateway.hasURL() {
		p.reach, mistakes[2] = c.Gateway.Connect.open(c)
	}
	p.verifiers, mistakes[3] = c.verifiers(p.reach)
	if c.IsGateway() {
		scopes := c.authorization().WithDefaults().Scopes
		p.policy, mistakes[4] = c.Gateway.Policy.options(scopes, c.verifier() != VerifierUpstream)
	}
	complete := *p
	if addr, err := net.ResolveTCPAddr("tcp", c.Addr); err == nil && c.Issuer == "" && c.Development &&
		addr.IP.IsLoopback() {
		complete.Issuer = c.LocalIssuer(addr)
	}
	return p, errors.Join(append(mistakes, complete.check())...)
}

// check reports the mistakes in what the other methods do not read.
func (p *Plan) check() error {
	var noIssuer error
	if p.Issuer == "" {
		noIssuer = errNoIssuer
	}
	config, wrongServers := p.oauth()
	wrong := config.Check()
	if p.IsAlone() {
		nameServers(wrong)
	}
	return errors.Join(noIssuer, wrongServers, wrong,
		bootstrap.Appearance(p.Appearance).Check(), p.Gateway.check(config, p.verifier()),
		checkProxies(p.TrustedProxies), p.checkRequests(),
		p.Database.check(), p.checkAdvertise(), cimd.Options(p.Metadata).Check(), p.checkClientDocuments(),
		p.checkSelfRegistration(), p.checkWellKnownFiles(), p.Audit.check(p.LogLevel))
}

// oauth returns the config of the OAuth server, and the mistakes in the secrets of MCP servers
// elsewhere.
func (p *Plan) oauth() (oauth.Config, error) {
	config, err := p.resourceServers(p.Gateway.resources(p.authorization()))
	for i, verifier := range p.verifiers {
		if i == 0 {
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
