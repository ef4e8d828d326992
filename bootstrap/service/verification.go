package service

import (
	"errors"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/adapters/verification/remote"
	"github.com/pasteport/pasteport/adapters/verification/tokenfile"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Verifiers of pasted tokens.
const (
	VerifierSite          = "site"          // the demo site
	VerifierUpstream      = "upstream"      // the MCP server behind a gateway
	VerifierFile          = "file"          // a file of hashed tokens
	VerifierHTTP          = "http"          // a URL of the site
	VerifierIntrospection = "introspection" // an RFC 7662 endpoint
)

var verifiers = []string{VerifierSite, VerifierUpstream, VerifierFile, VerifierHTTP, VerifierIntrospection}

// Verification chooses and configures the verifier of pasted tokens. A field of another verifier is
// a mistake, because it would have no effect.
type Verification struct {
	Verifier  string // VerifierUpstream in a gateway, else VerifierSite
	TokenFile string
	VerifyURL string

	IntrospectionURL          string
	IntrospectionClientID     string
	IntrospectionClientSecret string
	IntrospectionScopes       bool // the token's scope limits the scopes that it may grant
}

// verifierField describes a field of Verification and the verifiers that use it.
type verifierField struct {
	name          oauth.Field
	set, required bool
	of            []string
}

func (v Verification) fields() []verifierField {
	file, url, introspection := []string{VerifierFile}, []string{VerifierHTTP}, []string{VerifierIntrospection}
	return []verifierField{
		{"Verification.TokenFile", v.TokenFile != "", true, file},
		{"Verification.VerifyURL", v.VerifyURL != "", true, url},
		{"Verification.IntrospectionURL", v.IntrospectionURL != "", true, introspection},
		{"Verification.IntrospectionClientID", v.IntrospectionClientID != "", true, introspection},
		{"Verification.IntrospectionClientSecret", v.IntrospectionClientSecret != "", true, introspection},
		{"Verification.IntrospectionScopes", v.IntrospectionScopes, false, introspection},
	}
}

// check reports every mistake in the fields of a verifier, each with the remedy.
func (v Verification) check(chosen string, gateway bool) error {
	switch {
	case !slices.Contains(verifiers, chosen):
		return oauth.NewMistake("%s is %q: choose one of %s", oauth.Field("Verification.Verifier"), chosen,
			strings.Join(verifiers, ", "))
	case gateway && chosen == VerifierSite:
		return oauth.NewMistake("%s is %q, but a gateway has no demo site: choose another",
			oauth.Field("Verification.Verifier"), chosen)
	case !gateway && chosen == VerifierUpstream:
		return oauth.NewMistake(
			"%s is %q, but there is no upstream: choose another, or set upstream and run \"pasteport gateway\"",
			oauth.Field("Verification.Verifier"), chosen)
	}
	var mistakes []error
	for _, field := range v.fields() {
		mistakes = append(mistakes, field.check(chosen))
	}
	return errors.Join(mistakes...)
}

func (f verifierField) check(chosen string) error {
	belongs := slices.Contains(f.of, chosen)
	switch {
	case belongs && f.required && !f.set:
		return oauth.NewMistake("%s is empty: %s %q needs it", f.name, oauth.Field("Verification.Verifier"), chosen)
	case !belongs && f.set:
		return oauth.NewMistake("%s is set, but %s is %q: leave it out, or choose %s", f.name,
			oauth.Field("Verification.Verifier"),
			chosen, `"`+strings.Join(f.of, `" or "`)+`"`)
	}
	return nil
}

// verifier returns the kind of verifier that is chosen, also by default.
func (c Config) verifier() string {
	switch {
	case c.Verification.Verifier != "":
		return c.Verification.Verifier
	case c.IsGateway():
		return VerifierUpstream
	}
	return VerifierSite
}

// verifiers returns the verifiers of a Plan, and every mistake in the fields that they use.
func (c Config) verifiers(reach upstream.Reach) (all []oauth.BearerVerifier, err error) {
	v, transport := c.Verification, remote.Transport{
		Options: upstream.Reach{RootCAs: c.RootCAs},
		Logger:  c.Logger,
	}
	switch c.verifier() {
	case VerifierUpstream:
		all = c.upstreamVerifiers(reach)
	case VerifierFile:
		if v.TokenFile == "" {
			break
		}
		file, wrong := tokenfile.Open(v.TokenFile, c.Logger)
		if wrong != nil {
			err = oauth.NewMistake("%s: %s", oauth.Field("Verification.TokenFile"), wrong)
		}
		all = append(all, file)
	case VerifierHTTP:
		err = checkURL("Verification.VerifyURL", v.VerifyURL, transport)
		all = append(all, remote.NewEndpoint(v.VerifyURL, transport))
	case VerifierIntrospection:
		err = checkURL("Verification.IntrospectionURL", v.IntrospectionURL, transport)
		all = append(all, remote.NewIntrospection(remote.IntrospectionOptions{
			Transport:    transport,
			URL:          v.IntrospectionURL,
			ScopeCeiling: v.IntrospectionScopes,
			Now:          c.Now,
			ClientID:     v.IntrospectionClientID,
			Secret:       v.IntrospectionClientSecret,
		}))
	}
	return all, errors.Join(v.check(c.verifier(), c.IsGateway()), err)
}

func checkURL(name oauth.Field, address string, transport remote.Transport) error {
	if address == "" { // Verification.check reports it
		return nil
	}
	if err := transport.CheckURL(address); err != nil {
		return oauth.NewMistake("%s: %s", name, err)
	}
	return nil
}

// upstreamVerifiers returns a verifier for each upstream. GatewayConfig.check reports the mistakes
// in their options.
func (c Config) upstreamVerifiers(reach upstream.Reach) (all []oauth.BearerVerifier) {
	o := check.VerifierOptions{
		Reach:  reach,
		Host:   c.Gateway.Host,
		Fields: c.HostFields,
		Now:    c.Now,
		Logger: c.Logger,
	}
	o.Presentation, _ = secret.Parse(c.Gateway.Present, c.HostFields)
	for _, scope := range c.WithDefaults().Scopes {
		o.Scopes = append(o.Scopes, scope.Name)
	}
	for _, address := range c.Gateway.Upstreams {
		o.URL = address.URL
		all = append(all, check.NewVerifier(o))
	}
	return all
}
