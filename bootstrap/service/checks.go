package service

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/verification/remote"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

var errNoIssuer = errors.New("the issuer, the public https URL of this service, is missing: add --issuer https://…, " +
	"or --dev and a loopback --addr to try it on this computer")

// Load reads the settings of c's table and reports every mistake at once, before anything is
// opened. The additional checks run after the settings are read.
func (c *Config) Load(table *settings.Table, checks ...func(Config) error) error {
	err := table.Read()
	if !table.Unread() {
		c.developWith(table)
		err = errors.Join(err, c.readLogo(), c.checkSettings())
		for _, check := range checks {
			err = errors.Join(err, check(*c))
		}
	}
	c.checked = err == nil
	return table.Explain(err)
}

// checkSettings is check for a service whose issuer may depend on the address that it will listen
// on.
func (c Config) checkSettings() error {
	addr, err := net.ResolveTCPAddr("tcp", c.Addr)
	switch {
	case err != nil:
		err = oauth.NewMistake("%s is %q, which is not a valid address: write host:port, for example %s",
			oauth.Field("Addr"), c.Addr, DefaultAddr)
	case c.Issuer == "" && c.Development && addr.IP.IsLoopback():
		c.Issuer = c.LocalIssuer(addr)
	}
	return errors.Join(err, c.checkAdminAddr(), c.checkDemoToken(), c.check())
}

func (c Config) checkAdminAddr() error {
	if c.AdminAddr == "" || c.AdminAddr == AdminOff {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", c.AdminAddr); err != nil {
		return oauth.NewMistake("%s is %q, which is not a valid address: write host:port, for example %s, or %s",
			oauth.Field("AdminAddr"), c.AdminAddr, DefaultAdminAddr, AdminOff)
	}
	return nil
}

func (c Config) checkDemoToken() error {
	if err := demosite.CheckToken(c.EditorToken); err != nil {
		return oauth.NewMistake("%s is invalid: %s", oauth.Field("EditorToken"), err)
	}
	return verifierField{"EditorToken", c.EditorToken != "", false,
		[]string{VerifierSite}}.check(c.Verification.chosen(c.IsGateway()))
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
	resource := c.Resource
	if addr, err := net.ResolveTCPAddr("tcp", c.Addr); c.Issuer == "" && err == nil && addr.Port != 0 {
		c.Issuer = c.LocalIssuer(addr)
	}
	c.Verification.Verifier = c.Verification.chosen(c.IsGateway())
	c.Appearance = c.appearance()
	if issuer, err := url.Parse(c.Issuer); err == nil {
		c.Appearance.Name = cmp.Or(c.Appearance.Name, issuer.Host)
	}
	c.Config = c.Gateway.resources(c.Config, c.kindOfVerifier).WithDefaults().NamedAfter(c.Appearance.Name)
	if c.Issuer == "" {
		c.Resource = resource
	}
	c.Appearance.Accent = cmp.Or(c.Appearance.Accent, defaultAccent)
}

// GrantSettings returns what a command needs to find the grants in the store of a service.
func (c Config) GrantSettings(store oauth.SecretKeeper) *oauth.Settings {
	c.Resolve()
	c.Secrets = store
	return c.Config.GrantSettings()
}

// appearance names the demo site on its pages. A gateway without a name has the host of its issuer
// there.
func (c Config) appearance() bootstrap.Appearance {
	appearance := c.Appearance
	if !c.IsGateway() {
		appearance.Name = cmp.Or(appearance.Name, DemoName)
	}
	return appearance
}

// check finds mistakes before any file is created.
func (c Config) check() error {
	var mistakes []error
	if c.Issuer == "" {
		mistakes = append(mistakes, errNoIssuer)
	}
	config := c.oauth(c.kindOfVerifier)
	return errors.Join(append(mistakes, config.Check(), c.Appearance.Check(), c.Verification.check(c.IsGateway()),
		c.Gateway.check(config, c.Verification), checkProxies(c.TrustedProxies), c.checkPages(),
		c.checkMaxRequestBody(),
		oauth.Within("TLS", c.TLS.check()), c.Database.check(), c.checkBus(), c.checkClientDocuments(),
		c.checkSelfRegistration(), c.Audit.check())...)
}

// kindOfVerifier returns a verifier that verifies nothing, but shows which fields of the credential
// the configured one does: an upstream all, the others the token.
func (c Config) kindOfVerifier(string) oauth.BearerVerifier {
	if c.Verification.chosen(c.IsGateway()) == VerifierUpstream {
		return new(remote.MCP)
	}
	return nil
}

// oauth returns the config of the OAuth server. verifierOf returns the verifier of an upstream's
// tokens, or of the site's for "".
func (c Config) oauth(verifierOf func(upstream string) oauth.BearerVerifier) oauth.Config {
	config := c.Gateway.resources(c.Config, verifierOf)
	config.AllowLoopbackIssuer, config.AllowLoopbackClients = c.Development, c.Development
	config.HostedClients = append(slices.Clone(config.HostedClients), c.hostedClients()...)
	if len(c.AllowClients) > 0 {
		config.AllowClient = c.allows
	}
	return config
}

// checkSelfRegistration refuses settings under which clients register themselves and cannot
// connect, or are allowed and cannot register.
func (c Config) checkSelfRegistration() error {
	const registration, allowed = oauth.Field("SelfRegistration"), oauth.Field("AllowClients")
	listed := slices.Contains(c.AllowClients, oauth.SelfRegistered)
	switch {
	case c.SelfRegistration && len(c.AllowClients) > 0 && !listed:
		return oauth.NewMistake("%s is on, but %s does not list %s: add it, or leave %s out", registration, allowed,
			oauth.SelfRegistered, registration)
	case listed && !c.SelfRegistration:
		return oauth.NewMistake("%s lists %s, but %s is off: switch it on, or leave the word out", allowed,
			oauth.SelfRegistered, registration)
	}
	return nil
}

// allows reports whether the client's host may connect. It ignores the port, which client-id-ports
// decides.
func (c Config) allows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains(c.AllowClients, strings.ToLower(host))
}

func (c Config) checkMaxRequestBody() error {
	if c.MaxRequestBody != 0 && (c.MaxRequestBody < 64<<10 || c.MaxRequestBody > 1<<30) {
		return oauth.NewMistake("%s is %d bytes: choose 64KiB to 1GiB", oauth.Field("MaxRequestBody"), c.MaxRequestBody)
	}
	return nil
}

// checkPages also refuses AllowedHosts for a public service, which would ignore them.
func (c Config) checkPages() error {
	err := oauth.CheckOriginsAndHosts(c.AllowedOrigins, c.AllowedHosts)
	if len(c.AllowedHosts) > 0 && c.Issuer != "" && !c.HasLoopbackIssuer() {
		err = errors.Join(err,
			oauth.NewMistake("%s is set, but a server with a public issuer accepts every Host: leave it out",
				oauth.Field("WithAllowedHosts")))
	}
	return err
}

// checkProxies refuses a network that covers every address, because then every client could claim
// any address.
func checkProxies(proxies []netip.Prefix) error {
	for _, network := range proxies {
		if network.Bits() == 0 {
			return oauth.NewMistake("%s has %s, which covers every address: name the networks of your own proxies",
				oauth.Field("TrustedProxies"), network)
		}
	}
	return nil
}
