package oauth

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/uri"
)

func (c Config) checkURLs() []error {
	found := checkURL("Issuer", c.Issuer, c.AllowLoopbackIssuer)
	if strings.HasSuffix(c.Issuer, defaultPath) && c.Resource == c.Issuer+defaultPath {
		found.add("Issuer", "%q ends with %s, which is the path of the MCP endpoint below it, so that clients would "+
			"connect to %s: leave it out, or choose another path for the endpoint", uri.WithoutUser(c.Issuer),
			defaultPath, uri.WithoutUser(c.Resource))
	}
	found = append(found, c.checkResources()...)
	if c.AllowLoopbackClients && !uri.IsLoopback(c.Issuer) {
		found.add("AllowLoopbackClients", "is set with the issuer %s: it is for development on this computer only, "+
			"switch it off", uri.WithoutUser(c.Issuer))
	}
	return found
}

// checkURL checks the issuer or a resource, which clients compare byte for byte.
func checkURL(field string, raw string, loopbackAllowed bool) (found mistakes) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return []error{NewMistake(field, "%q is not an absolute URL: write it like https://cms.example.com",
			uri.WithoutUser(raw))}
	}
	if u.Scheme == "http" && uri.IsLoopback(raw) && !loopbackAllowed {
		found.add(field, "%q is http: set AllowLoopbackIssuer (--dev) if this is development on this computer, or "+
			"use https", uri.WithoutUser(raw))
	}
	port, _ := strconv.Atoi(u.Port())
	for _, check := range []struct {
		wrong  bool
		remedy string
	}{
		{u.Scheme == "http" && !uri.IsLoopback(raw),
			"is not https: clients refuse anything else but on this computer; use the public https address"},
		{u.Scheme != "https" && u.Scheme != "http", "has another scheme: use https"},
		{u.User != nil || strings.ContainsAny(raw, "?#"), "has a user, query or fragment: leave it out"},
		{strings.HasSuffix(raw, "/"), "ends with a slash: leave it out, clients compare it byte for byte"},
		{u.Host != strings.ToLower(u.Host), "has upper-case letters in its host: write it in lower case"},
		{strings.HasSuffix(u.Host, ":") || port > 65535, "has an invalid port: leave it out or correct it"},
		{u.String() != raw || strings.Contains(raw, `"`) || strings.ContainsAny(u.Path, ":*"),
			"has characters that cannot be routed or quoted: leave them out"},
		{uri.HasDotSegment(u.Path) || strings.Contains(u.Path, "//"),
			"has empty or dot segments in its path: leave them out"},
	} {
		if check.wrong {
			found.add(field, "%q %s", uri.WithoutUser(raw), check.remedy)
		}
	}
	return found
}

// checkScopes checks the scopes of the first server, and of each other server that has its own.
func (c Config) checkScopes() []error {
	found := checkScopeList(c.Scopes, c.DefaultScopes)
	for i, server := range c.MoreServers {
		if len(server.Scopes) > 0 || len(server.DefaultScopes) > 0 {
			for _, mistake := range checkScopeList(c.scopesOf(server)) {
				found = append(found, fmt.Errorf("MoreServers[%d].%w", i, mistake))
			}
		}
	}
	return found
}

func checkScopeList(scopes []Scope, defaults []string) []error {
	var found mistakes
	names := make([]string, 0, len(scopes))
	for _, scope := range scopes {
		parsed, err := ParseScopes(scope.Name)
		switch {
		case err != nil || len(parsed.values) != 1:
			found.add("Scopes", "has %q: a scope is one word of printable ASCII without quotes", scope.Name)
		case slices.Contains(names, scope.Name):
			found.add("Scopes", "has %q twice: keep one", scope.Name)
		case scope.Name == OfflineAccess:
			found.add("Scopes", "has offline_access: leave it out, it is always included")
		}
		names = append(names, scope.Name)
	}
	for _, scope := range scopes {
		for _, implied := range scope.Implies {
			if !slices.Contains(names, implied) {
				found.add("Scopes", "has %q, which implies the unknown %q: add it or leave it out", scope.Name, implied)
			}
		}
	}
	for _, name := range defaults {
		if !slices.Contains(names, name) {
			found.add("DefaultScopes", "has %q: add it to the scopes or leave it out", name)
		}
	}
	return found
}

// checkRequired checks the fields that Check does not need.
func (c Config) checkRequired() (found mistakes) {
	if c.Issuer == "" {
		found.add("Issuer", "is empty: give the public https URL of this site, for example https://cms.example.com")
	}
	if c.Now == nil || c.Random == nil {
		found.add("Now", "or Random is nil: leave both to bootstrap, which sets the system's")
	}
	if c.VerifyBearer == nil && c.Verifier == nil {
		found.add("VerifyBearer", "is nil: set the function that reports whether a token of your site is valid")
	}
	if c.VerifyBearer != nil && c.Verifier != nil {
		found.add("VerifyBearer", "and Verifier are both set: keep one of them")
	}
	if len(c.Secret) == 0 && len(c.PreviousSecrets) > 0 {
		found.add("PreviousSecrets", "is set without Secret: give the newest secret there")
	}
	secrets, err := c.keeper().Secrets()
	if err != nil {
		return append(found, fmt.Errorf("reading the server secrets: %w", err))
	}
	for i, secret := range secrets {
		field := "Secret"
		if i > 0 {
			field = "PreviousSecrets"
		}
		if len(secret) < MinSecretLength {
			found.add(field, "has %d bytes: give %d random bytes or more, or use a store that keeps its own secret",
				len(secret), MinSecretLength)
		}
	}
	return found
}

// HasLoopbackIssuer reports whether the issuer is a loopback address.
func (c Config) HasLoopbackIssuer() bool { return uri.IsLoopback(c.Issuer) }

func (c Config) checkLifetimes() (found mistakes) {
	for _, l := range c.Lifetimes() {
		switch value := *l.Value; {
		case value >= l.Least && value <= l.Most, l.MayBeOff && value < 0:
		case l.MayBeOff:
			found.add(l.Field, "is %s: choose from %s to %s, or switch it off", value, l.Least, l.Most)
		default:
			found.add(l.Field, "is %s: choose from %s to %s", value, l.Least, l.Most)
		}
	}
	for _, choice := range c.GrantChoices {
		if choice < shortestGrant || choice > c.GrantTTL {
			found.add("GrantChoices", "has %s: choose from %s to %s, the longest time of a grant", choice,
				shortestGrant, c.GrantTTL)
		}
	}
	if c.RefreshTokens != RefreshRequested && c.RefreshTokens != RefreshRegistered {
		found.add("RefreshTokens", "is %q: choose %s or %s", c.RefreshTokens, RefreshRequested, RefreshRegistered)
	}
	return found
}

func (c Config) checkHostFields() (found mistakes) {
	for _, wrong := range c.HostFields.Check() {
		found.add("HostFields", ": %s", wrong)
	}
	if token, hasToken := c.HostFields.Find(credential.Token); len(c.HostFields) > 0 && !c.verifiesFields() &&
		(!hasToken || token.Optional) {
		found.add("HostFields", "has no required field %q, which is the only one that the verifier verifies: call "+
			"the key %q", credential.Token, credential.Token)
	}
	for _, field := range c.HostFields {
		if c.AcceptHostTokens && field.Name != credential.Token && !field.Optional {
			found.add("AcceptHostTokens", "is on, but the field %q is required, which no header has: switch it off",
				field.Name)
		}
	}
	return found
}
