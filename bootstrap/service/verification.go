package service

import (
	"errors"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
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
	Verifier  string `set:"verifier" choices:"site,upstream,file,http,introspection" unset:"upstream in a gateway, else site" example:"file" doc:"how pasted tokens are verified: by the demo site, the upstream of a gateway, a file of hashed tokens, a URL of the site, or an RFC 7662 introspection endpoint"`
	TokenFile string `set:"token-file" path:"file" example:"/etc/pasteport/tokens" doc:"file of hashed tokens from \"pasteport hash-token\"; changes take effect when somebody connects, and at the next check of a connection"`
	VerifyURL string `set:"verify-url" secret:"query" example:"https://cms.example.com/token" doc:"URL for a GET with the token as bearer token: 2xx means valid, 401 or 403 invalid"`

	IntrospectionURL          string `set:"introspection-url" secret:"query" example:"https://login.example.com/introspect" doc:"URL of the introspection endpoint (RFC 7662)"`
	IntrospectionClientID     string `set:"introspection-client-id" example:"pasteport" doc:"client id for the introspection endpoint"`
	IntrospectionClientSecret string `set:"introspection-client-secret" secret:"true" doc:"client secret for the introspection endpoint"`
	IntrospectionScopes       bool   `set:"introspection-scopes" doc:"limit what people can grant with a token to the scopes in the introspection response"`
}

// verifierField describes a setting and the only verifier that uses it.
type verifierField struct {
	name            string
	isSet, required bool
	verifier        string
}

// checkVerification reports every mistake in the fields of a verifier, each with the remedy.
func (c Config) checkVerification() error {
	v, chosen := c.Verification, c.verifier()
	switch {
	case !slices.Contains(verifiers, chosen):
		return oauth.NewMistake("verifier", "is %q: choose one of %s", chosen, strings.Join(verifiers, ", "))
	case !c.IsSite() && chosen == VerifierSite:
		return oauth.NewMistake("verifier", "is %q, but only \"pasteport serve\" has a demo site: choose another",
			chosen)
	case !c.IsGateway() && chosen == VerifierUpstream:
		return oauth.NewMistake("verifier", "is %q, but there is no upstream: choose another, or set "+
			"upstream and run \"pasteport gateway\"", chosen)
	}
	var mistakes []error
	for _, field := range []verifierField{
		{"token-file", v.TokenFile != "", true, VerifierFile},
		{"verify-url", v.VerifyURL != "", true, VerifierHTTP},
		{"introspection-url", v.IntrospectionURL != "", true, VerifierIntrospection},
		{"introspection-client-id", v.IntrospectionClientID != "", true, VerifierIntrospection},
		{"introspection-client-secret", v.IntrospectionClientSecret != "", true, VerifierIntrospection},
		{"introspection-scopes", v.IntrospectionScopes, false, VerifierIntrospection},
	} {
		mistakes = append(mistakes, field.check(chosen))
	}
	return errors.Join(mistakes...)
}

func (f verifierField) check(chosen string) error {
	switch {
	case f.verifier == chosen && f.required && !f.isSet:
		return oauth.NewMistake(f.name, "is empty: the verifier %q needs it", chosen)
	case f.verifier != chosen && f.isSet:
		return oauth.NewMistake(f.name, "is set, but verifier is %q: leave it out, or choose %q", chosen, f.verifier)
	}
	return nil
}

// verifier returns the verifier that is chosen, or else the default.
func (c Config) verifier() string {
	switch {
	case c.Verification.Verifier != "":
		return c.Verification.Verifier
	case c.IsGateway():
		return VerifierUpstream
	}
	return VerifierSite
}

// verifiers returns Plan.verifiers, and every mistake in the settings that they use.
func (c Config) verifiers(reach gateway.Reach) (all []oauth.BearerVerifier, err error) {
	v, transport := c.Verification, remote.Transport{Options: gateway.Reach{RootCAs: c.RootCAs}, Logger: c.Logger}
	switch c.verifier() {
	case VerifierUpstream:
		config, to := c.authorization().WithDefaults(), c.Gateway.GatewayConfig
		to.Reach, to.HostFields, to.Now, to.Logger = reach, config.HostFields, c.Now, c.Logger
		var scopes []string
		for _, scope := range config.Scopes {
			scopes = append(scopes, scope.Name)
		}
		for _, u := range c.Gateway.Upstreams {
			all = append(all, check.NewVerifier(u.URL, to, scopes)) // GatewayConfig.check reports mistakes
		}
	case VerifierFile:
		if v.TokenFile == "" { // checkVerification reports it
			break
		}
		file, wrong := tokenfile.Open(v.TokenFile, c.Logger)
		err = mistaken("token-file", "", wrong)
		all = append(all, file)
	case VerifierHTTP:
		if v.VerifyURL != "" { // else checkVerification reports it
			err = mistaken("verify-url", "", transport.CheckURL(v.VerifyURL))
		}
		all = append(all, remote.NewEndpoint(v.VerifyURL, transport))
	case VerifierIntrospection:
		if v.IntrospectionURL != "" {
			err = mistaken("introspection-url", "", transport.CheckURL(v.IntrospectionURL))
		}
		all = append(all, remote.NewIntrospection(remote.IntrospectionOptions{
			Transport:    transport,
			URL:          v.IntrospectionURL,
			ScopeCeiling: v.IntrospectionScopes,
			Now:          c.Now,
			ClientID:     v.IntrospectionClientID,
			Secret:       v.IntrospectionClientSecret,
		}))
	}
	return all, errors.Join(c.checkVerification(), err)
}
