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
	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/guard"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/domain/oauth"
)

var errNoIssuer = errors.New("the issuer, the public https URL of this service, is missing: add --issuer https://…, " +
	"or --dev and a loopback --addr to try it on this computer")

func checkAddress(field oauth.Field, address, example string) error {
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return oauth.NewMistake("%s is %q, which is not a valid address: write host:port, for example %s", field,
			address, example)
	}
	return nil
}

func (c Config) checkDemoToken() error {
	if err := demosite.CheckToken(c.EditorToken); err != nil {
		return oauth.NewMistake("%s is invalid: %s", oauth.Field("EditorToken"), err)
	}
	return verifierField{"EditorToken", c.EditorToken != "", false,
		[]string{VerifierSite}}.check(c.verifier())
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
	c.Appearance = c.appearance()
	if issuer, err := url.Parse(c.Issuer); err == nil {
		c.Appearance.Name = cmp.Or(c.Appearance.Name, issuer.Host)
	}
	c.Config = c.Gateway.resources(c.Config).WithDefaults().NamedAfter(c.Appearance.Name)
	if c.Issuer == "" {
		c.Resource = resource
	}
	c.Appearance.Accent = cmp.Or(c.Appearance.Accent, defaultAccent)
	c.Appearance.CredentialWord = cmp.Or(c.Appearance.CredentialWord, pages.WordToken)
}

// GrantSettings returns what a command needs to find the grants in the store of a service, and to
// register clients.
func (c Config) GrantSettings(store oauth.SecretKeeper) *oauth.Settings {
	mayBeGateway := !c.IsGateway() && c.Appearance.Name == "" && c.ResourceName == ""
	c.Resolve()
	if mayBeGateway { // a command without the settings of its service
		c.ResourceName = c.Resource
	}
	if len(c.AllowClients) > 0 {
		c.AllowClient = c.allows
	}
	if c.verifier() == VerifierUpstream {
		c.Verifier = new(check.Verifier) // by its type, every field of the credential identifies a person
	}
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

func (c Config) checkWellKnownFiles() error {
	if c.WellKnownFiles == "" {
		return nil
	}
	if err := oauthhttp.CheckWellKnownFiles(c.WellKnownFiles); err != nil {
		return oauth.NewMistake("%s cannot be served: %s", oauth.Field("WellKnownFiles"), err)
	}
	return nil
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
	return slices.Contains(c.AllowClients, strings.ToLower(oauth.HostOf(host)))
}

// checkRequests also refuses AllowedHosts for a public service, which would ignore them.
func (c Config) checkRequests() error {
	err := guard.Options{
		AllowedOrigins: c.AllowedOrigins,
		AllowedHosts:   c.AllowedHosts,
		MaxRequestBody: c.MaxRequestBody,
	}.Check()
	if len(c.AllowedHosts) > 0 && c.Issuer != "" && !c.HasLoopbackIssuer() {
		err = errors.Join(err,
			oauth.NewMistake("%s is set, but a server with a public issuer accepts every Host: leave it out",
				oauth.Field("AllowedHosts")))
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
