package oauth

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/domain/credential"
)

func (c Config) checkURLs() []error {
	mistakes := checkURL("Issuer", c.Issuer, c.AllowLoopbackIssuer)
	if strings.HasSuffix(c.Issuer, defaultPath) && c.Resource == c.Issuer+defaultPath {
		mistakes = append(mistakes, NewMistake("Issuer", "%q ends with %s, which is the path of the MCP endpoint "+
			"below it, so that clients would connect to %s: leave it out, or choose another path for the endpoint",
			withoutUser(c.Issuer), defaultPath, withoutUser(c.Resource)))
	}
	mistakes = append(mistakes, c.checkResources()...)
	if c.AllowLoopbackClients && !loopbackIssuer(c.Issuer) {
		mistakes = append(mistakes,
			NewMistake("AllowLoopbackClients", "is set with the issuer %s: it is for development on this computer "+
				"only, switch it off", withoutUser(c.Issuer)))
	}
	return mistakes
}

// checkURL checks the issuer or a resource, which clients compare byte for byte.
func checkURL(field string, raw string, loopbackAllowed bool) (mistakes []error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return []error{NewMistake(field, "%q is not an absolute URL: write it like https://cms.example.com",
			withoutUser(raw))}
	}
	if u.Scheme == "http" && loopbackIssuer(raw) && !loopbackAllowed {
		mistakes = append(mistakes,
			NewMistake(field, "%q is http: set AllowLoopbackIssuer (--dev) if this is development on this "+
				"computer, or use https", withoutUser(raw)))
	}
	port, _ := strconv.Atoi(u.Port())
	for _, check := range []struct {
		wrong  bool
		remedy string
	}{
		{u.Scheme == "http" && !loopbackIssuer(raw),
			"is not https: clients refuse anything else but on this computer; use the public https address"},
		{u.Scheme != "https" && u.Scheme != "http", "has another scheme: use https"},
		{u.User != nil || strings.ContainsAny(raw, "?#"), "has a user, query or fragment: leave it out"},
		{strings.HasSuffix(raw, "/"), "ends with a slash: leave it out, clients compare it byte for byte"},
		{u.Host != strings.ToLower(u.Host), "has upper-case letters in its host: write it in lower case"},
		{strings.HasSuffix(u.Host, ":") || port > 65535, "has an invalid port: leave it out or correct it"},
		{u.String() != raw || strings.Contains(raw, `"`) || strings.ContainsAny(u.Path, ":*"),
			"has characters that cannot be routed or quoted: leave them out"},
		{hasDotSegment(u.Path) || strings.Contains(u.Path, "//"),
			"has empty or dot segments in its path: leave them out"},
	} {
		if check.wrong {
			mistakes = append(mistakes, NewMistake(field, "%q %s", withoutUser(raw), check.remedy))
		}
	}
	return mistakes
}

// withoutUser cuts the user and password out of a URL, so that an error may quote it.
func withoutUser(raw string) string {
	at := strings.LastIndexByte(raw, '@')
	if at < 0 {
		return raw
	}
	before, _, found := strings.Cut(raw[:at], "//")
	if !found {
		return "…" + raw[at:]
	}
	return before + "//…" + raw[at:]
}

// checkScopes checks the scopes of the first server, and those of each other that has its own.
func (c Config) checkScopes() []error {
	mistakes := checkScopes(c.Scopes, c.DefaultScopes)
	for i, server := range c.MoreServers {
		if len(server.Scopes) > 0 || len(server.DefaultScopes) > 0 {
			for _, mistake := range checkScopes(c.scopesOf(server)) {
				mistakes = append(mistakes, fmt.Errorf("MoreServers[%d].%w", i, mistake))
			}
		}
	}
	return mistakes
}

func checkScopes(scopes []Scope, defaults []string) []error {
	var mistakes []error
	names := make([]string, 0, len(scopes))
	for _, scope := range scopes {
		parsed, err := ParseScopes(scope.Name)
		switch {
		case err != nil || len(parsed.values) != 1:
			mistakes = append(mistakes,
				NewMistake("Scopes", "has %q: a scope is one word of printable ASCII without quotes", scope.Name))
		case slices.Contains(names, scope.Name):
			mistakes = append(mistakes, NewMistake("Scopes", "has %q twice: keep one", scope.Name))
		case scope.Name == OfflineAccess:
			mistakes = append(mistakes,
				NewMistake("Scopes", "has offline_access: leave it out, it is always included"))
		}
		names = append(names, scope.Name)
	}
	for _, scope := range scopes {
		for _, implied := range scope.Implies {
			if !slices.Contains(names, implied) {
				mistakes = append(mistakes,
					NewMistake("Scopes", "has %q, which implies the unknown %q: add it or leave it out", scope.Name,
						implied))
			}
		}
	}
	for _, name := range defaults {
		if !slices.Contains(names, name) {
			mistakes = append(mistakes,
				NewMistake("DefaultScopes", "has %q: add it to the scopes or leave it out", name))
		}
	}
	return mistakes
}

// checkRequired checks the fields that Check does not need.
func (c Config) checkRequired() (mistakes []error) {
	if c.Issuer == "" {
		mistakes = append(mistakes,
			NewMistake("Issuer", "is empty: give the public https URL of this site, for example "+
				"https://cms.example.com"))
	}
	if c.Now == nil || c.Random == nil {
		mistakes = append(mistakes,
			NewMistake("Now", "or Random is nil: leave both to bootstrap, which sets the system's"))
	}
	if c.VerifyBearer == nil && c.Verifier == nil {
		mistakes = append(mistakes,
			NewMistake("VerifyBearer", "is nil: set the function that reports whether a token of your site is valid"))
	}
	if c.VerifyBearer != nil && c.Verifier != nil {
		mistakes = append(mistakes,
			NewMistake("VerifyBearer", "and Verifier are both set: keep one of them"))
	}
	return append(mistakes, c.checkSecrets()...)
}

// checkClientRules checks the fields about redirect URIs of clients.
func (c Config) checkClientRules() (mistakes []error) {
	for _, scheme := range c.AllowedPrivateSchemes {
		odd := strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != ""
		if scheme == "" || odd || slices.Contains(forbiddenSchemes, scheme) || scheme == "http" || scheme == "https" {
			mistakes = append(mistakes,
				NewMistake("AllowedPrivateSchemes", "has %q: only lower-case schemes of applications can be allowed",
					scheme))
		}
	}
	return mistakes
}

// HasLoopbackIssuer reports whether the issuer is a loopback address.
func (c Config) HasLoopbackIssuer() bool { return loopbackIssuer(c.Issuer) }

func loopbackIssuer(raw string) bool { return loopbackHost(HostOf(hostPort(raw))) }

func hostPort(raw string) string {
	_, rest, _ := strings.Cut(raw, ":")
	return authorityOf(rest)
}

func (c Config) checkLifetimes() (mistakes []error) {
	for _, l := range c.Lifetimes() {
		if err := l.check(); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	for _, choice := range c.GrantChoices {
		if choice < shortestGrant || choice > c.GrantTTL {
			mistakes = append(mistakes, NewMistake("GrantChoices", "has %s: choose from %s to %s, the longest time "+
				"of a grant", choice, shortestGrant, c.GrantTTL))
		}
	}
	if c.RefreshTokens != RefreshRequested && c.RefreshTokens != RefreshRegistered {
		mistakes = append(mistakes, NewMistake("RefreshTokens", "is %q: choose %s or %s", c.RefreshTokens,
			RefreshRequested, RefreshRegistered))
	}
	return mistakes
}

func (c Config) checkSecrets() (mistakes []error) {
	if len(c.Secret) == 0 && len(c.PreviousSecrets) > 0 {
		mistakes = append(mistakes,
			NewMistake("PreviousSecrets", "is set without Secret: give the newest secret there"))
	}
	secrets, err := c.keeper().Secrets()
	if err != nil {
		return append(mistakes, fmt.Errorf("reading the server secrets: %w", err))
	}
	for i, secret := range secrets {
		field := "Secret"
		if i > 0 {
			field = "PreviousSecrets"
		}
		if len(secret) < MinSecretLength {
			mistakes = append(mistakes,
				NewMistake(field, "has %d bytes: give %d random bytes or more, or use a store that keeps its own "+
					"secret", len(secret), MinSecretLength))
		}
	}
	return mistakes
}

func (c Config) checkHostFields() (mistakes []error) {
	for _, wrong := range c.HostFields.Check() {
		mistakes = append(mistakes, NewMistake("HostFields", ": %s", wrong))
	}
	if token, hasToken := c.HostFields.Find(credential.Token); len(c.HostFields) > 0 && !c.verifiesFields() &&
		(!hasToken || token.Optional) {
		mistakes = append(mistakes,
			NewMistake("HostFields", "has no required field %q, which is the only one that the verifier verifies: "+
				"call the key %q", credential.Token, credential.Token))
	}
	for _, field := range c.HostFields {
		if c.AcceptHostTokens && field.Name != credential.Token && !field.Optional {
			mistakes = append(mistakes,
				NewMistake("AcceptHostTokens", "is on, but the field %q is required, which no header has: switch it "+
					"off", field.Name))
		}
	}
	return mistakes
}
