package service

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	oauthhttp "github.com/pasteport/pasteport/adapters/http"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/domain/oauth"
)

var errNoIssuer = errors.New("the issuer, the public https URL of this service, is missing: add --issuer https://…, " +
	"or --dev and a loopback --addr to try it on this computer")

func checkAddress(name, address, example string) error {
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return oauth.NewMistake(name, "is %q, which is not a valid address: write host:port, for example %s", address,
			example)
	}
	return nil
}

func (c Config) checkDemoToken() error {
	if err := demosite.CheckToken(c.EditorToken); err != nil {
		return oauth.NewMistake("demo-token", "is invalid: %w", err)
	}
	return verifierField{"demo-token", c.EditorToken != "", false, VerifierSite}.check(c.verifier())
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
	if c.Issuer == "" {
		c.Resource = resource
	}
	c.Appearance.Accent = cmp.Or(c.Appearance.Accent, defaultAccent)
}

// GrantSettings returns what a command needs to find the grants in the store of a service, and to
// register clients.
func (c Config) GrantSettings(store oauth.SecretKeeper) *oauth.Settings {
	mayBeGateway := c.IsSite() && c.Appearance.Name == "" && c.ResourceName == ""
	c.Resolve()
	if mayBeGateway { // a command without the settings of its service
		c.ResourceName = c.Resource
	}
	config, _ := c.resourceServers(c.Gateway.resources(c.authorization()))
	if len(c.AllowClients) > 0 {
		config.AllowClient = c.Allows
	}
	if c.verifier() == VerifierUpstream {
		config.Verifier = new(check.Verifier) // by its type, every field of the credential identifies a person
	}
	config.Secrets = store
	return config.GrantSettings()
}

// siteName names the demo site on its pages. Other services without a name have the host of their
// issuer there.
func (c Config) siteName() string {
	if c.IsSite() {
		return cmp.Or(c.Appearance.Name, DemoName)
	}
	return c.Appearance.Name
}

func (c Config) checkWellKnownFiles() error {
	if err := oauthhttp.CheckWellKnownFiles(c.WellKnownFiles); c.WellKnownFiles != "" && err != nil {
		return oauth.NewMistake("well-known-files", "cannot be served: %w", err)
	}
	return nil
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
		return strings.EqualFold(allowed, oauth.HostOf(host))
	})
}

// checkRequests also refuses AllowedHosts for a public service, which would ignore them.
func (c Config) checkRequests() error {
	err := guard.Options{
		AllowedOrigins: c.AllowedOrigins,
		AllowedHosts:   c.AllowedHosts,
		MaxRequestBody: c.MaxRequestBody,
	}.Check()
	if len(c.AllowedHosts) > 0 && c.Issuer != "" && !c.authorization().HasLoopbackIssuer() {
		err = errors.Join(err, oauth.NewMistake("allowed-hosts",
			"is set, but a server with a public issuer accepts every Host: leave it out"))
	}
	return err
}

// checkProxies refuses a network that covers every address, because then every client could claim
// any address.
func checkProxies(proxies []netip.Prefix) error {
	for _, network := range proxies {
		if network.Bits() == 0 {
			return oauth.NewMistake("trusted-proxies", "has %s, which covers every address: name the networks of your "+
				"own proxies", network)
		}
	}
	return nil
}
