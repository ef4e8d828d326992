package service

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/secret"
	"github.com/pasteport/pasteport/adapters/outbound"
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

	VerifyOverHTTP bool // allows an http URL on this computer or a private network
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
		{"Verification.VerifyOverHTTP", v.VerifyOverHTTP, false, slices.Concat(url, introspection)},
	}
}

// check reports every mistake at once, each with the field and the remedy.
func (v Verification) check(gateway bool) error {
	chosen := v.chosen(gateway)
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
	switch chosen {
	case VerifierFile:
		mistakes = append(mistakes, v.checkTokenFile())
	case VerifierHTTP:
		mistakes = append(mistakes, v.checkURL("Verification.VerifyURL", v.VerifyURL))
	case VerifierIntrospection:
		mistakes = append(mistakes, v.checkURL("Verification.IntrospectionURL", v.IntrospectionURL))
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

func (v Verification) checkURL(name oauth.Field, address string) error {
	if address == "" {
		return nil
	}
	if err := v.transport(Config{}).CheckURL(address); err != nil {
		return oauth.NewMistake("%s: %s", name, err)
	}
	return nil
}

// checkTokenFile logs nothing, because Open opens the file again with the logger of the service.
func (v Verification) checkTokenFile() error {
	if v.TokenFile == "" {
		return nil
	}
	if _, err := tokenfile.Open(v.TokenFile, slog.New(slog.DiscardHandler)); err != nil {
		return oauth.NewMistake("%s: %s", oauth.Field("Verification.TokenFile"), err)
	}
	return nil
}

func (v Verification) chosen(gateway bool) string {
	switch {
	case v.Verifier != "":
		return v.Verifier
	case gateway:
		return VerifierUpstream
	}
	return VerifierSite
}

func (v Verification) transport(c Config) remote.Transport {
	return remote.Transport{Options: outbound.Options{AllowHTTP: v.VerifyOverHTTP, RootCAs: c.RootCAs},
		Logger: c.Logger}
}

// verifiers returns a function from an upstream's URL to the verifier of its tokens. The config
// must have passed check.
func (c Config) verifiers(site oauth.BearerVerifier) (func(upstream string) oauth.BearerVerifier, error) {
	if c.Verification.chosen(c.IsGateway()) == VerifierUpstream {
		connect, err := c.Gateway.Connect.options(c)
		if err != nil {
			return nil, err
		}
		o := remote.MCPOptions{Host: c.Gateway.Host,
			Transport: remote.Transport{Options: connect, Logger: c.Logger}, Now: c.Now}
		o.Presentation, _ = secret.Parse(c.Gateway.Present, c.HostFields) // was checked
		o.Fields = c.HostFields
		for _, scope := range c.WithDefaults().Scopes {
			o.Scopes = append(o.Scopes, scope.Name)
		}
		return func(upstream string) oauth.BearerVerifier {
			o.URL = upstream
			return remote.NewMCP(o)
		}, nil
	}
	one, err := c.verifier(site)
	return func(string) oauth.BearerVerifier { return one }, err
}

func (c Config) verifier(site oauth.BearerVerifier) (oauth.BearerVerifier, error) {
	v := c.Verification
	switch v.chosen(c.IsGateway()) {
	case VerifierFile:
		return tokenfile.Open(v.TokenFile, c.Logger)
	case VerifierHTTP:
		return remote.NewEndpoint(v.VerifyURL, v.transport(c)), nil
	case VerifierIntrospection:
		return remote.NewIntrospection(remote.IntrospectionOptions{
			Transport:    v.transport(c),
			URL:          v.IntrospectionURL,
			ScopeCeiling: v.IntrospectionScopes,
			Now:          c.Now,
			Client:       remote.Client{ID: v.IntrospectionClientID, Secret: v.IntrospectionClientSecret},
		}), nil
	}
	return site, nil
}
