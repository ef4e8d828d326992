package oauth

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (c Config) checkURLs() []error {
	mistakes := checkURL("Issuer", c.Issuer, c.AllowLoopbackIssuer)
	if strings.HasSuffix(c.Issuer, defaultPath) && c.Resource == c.Issuer+defaultPath {
		mistakes = append(mistakes, NewMistake("%s %q ends with %s, which is the path of the MCP endpoint below "+
			"it, so that clients would connect to %s: leave it out, or choose another path for the endpoint",
			Field("Issuer"), withoutUser(c.Issuer), defaultPath, withoutUser(c.Resource)))
	}
	mistakes = append(mistakes, c.checkResources()...)
	if c.AllowLoopbackClients && !loopbackIssuer(c.Issuer) {
		mistakes = append(mistakes,
			NewMistake("%s is set with the issuer %s: it is for development on this computer only, switch it off",
				Field("AllowLoopbackClients"), withoutUser(c.Issuer)))
	}
	return mistakes
}

// checkURL checks the issuer or a resource, which clients compare byte for byte.
func checkURL(field Field, raw string, loopbackAllowed bool) (mistakes []error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return []error{NewMistake("%s %q is not an absolute URL: write it like https://cms.example.com", field,
			withoutUser(raw))}
	}
	if u.Scheme == "http" && loopbackIssuer(raw) && !loopbackAllowed {
		mistakes = append(mistakes,
			NewMistake("%s %q is http: set %s if this is development on this computer, or use https", field,
				withoutUser(raw), Field("AllowLoopbackIssuer")))
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
			mistakes = append(mistakes, NewMistake("%s %q %s", field, withoutUser(raw), check.remedy))
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

func (c Config) checkScopes() []error {
	var mistakes []error
	names := make([]string, 0, len(c.Scopes))
	for _, scope := range c.Scopes {
		parsed, err := ParseScopes(scope.Name)
		switch {
		case err != nil || len(parsed.values) != 1:
			mistakes = append(mistakes,
				NewMistake("%s has %q: a scope is one word of printable ASCII without quotes", Field("Scopes"),
					scope.Name))
		case slices.Contains(names, scope.Name):
			mistakes = append(mistakes, NewMistake("%s has %q twice: keep one", Field("Scopes"), scope.Name))
		case scope.Name == OfflineAccess:
			mistakes = append(mistakes,
				NewMistake("%s has offline_access: leave it out, it is always included", Field("Scopes")))
		}
		names = append(names, scope.Name)
	}
	for _, scope := range c.Scopes {
		for _, implied := range scope.Implies {
			if !slices.Contains(names, implied) {
				mistakes = append(mistakes,
					NewMistake("%s has %q, which implies the unknown %q: add it or leave it out", Field("Scopes"),
						scope.Name, implied))
			}
		}
	}
	for _, name := range c.DefaultScopes {
		if !slices.Contains(names, name) {
			mistakes = append(mistakes,
				NewMistake("%s has %q: add it to %s or leave it out", Field("DefaultScopes"), name, Field("Scopes")))
		}
	}
	return mistakes
}

// checkRequired checks the fields that Check does not need.
func (c Config) checkRequired() (mistakes []error) {
	if c.Issuer == "" {
		mistakes = append(mistakes,
			NewMistake("%s is empty: give the public https URL of this site, for example https://cms.example.com",
				Field("Issuer")))
	}
	if c.Now == nil || c.Random == nil {
		mistakes = append(mistakes,
			NewMistake("%s or %s is nil: leave both to bootstrap, which sets the system's", Field("Now"),
				Field("Random")))
	}
	if c.VerifyBearer == nil && c.Verifier == nil {
		mistakes = append(mistakes,
			NewMistake("%s is nil: set the function that reports whether a token of your site is valid",
				Field("VerifyBearer")))
	}
	if c.VerifyBearer != nil && c.Verifier != nil {
		mistakes = append(mistakes,
			NewMistake("%s and %s are both set: keep one of them", Field("VerifyBearer"), Field("Verifier")))
	}
	return append(mistakes, c.checkSecrets()...)
}

// checkClientRules checks the fields about metadata documents and redirect URIs of clients.
func (c Config) checkClientRules() (mistakes []error) {
	if c.MetadataProxy != "" && !IsProxyURL(c.MetadataProxy) {
		mistakes = append(mistakes,
			NewMistake("%s is no URL of an HTTP proxy: write http://host:3128 or https://host:3128, with "+
				"user:password@ before "+
				"the host if the proxy requires them, %%2F for a slash in the password and so on, and nothing after "+
				"the port", Field("MetadataProxy")))
	}
	for _, port := range c.ClientIDPorts {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			mistakes = append(mistakes,
				NewMistake("%s has %q: a port is a number from 1 to 65535", Field("ClientIDPorts"), port))
		}
	}
	for _, host := range c.TrustedRedirectHosts {
		if host == "" || strings.ContainsAny(host, "/@?# ") {
			mistakes = append(mistakes,
				NewMistake("%s has %q: write host or host:port, without scheme and path",
					Field("TrustedRedirectHosts"), host))
		}
	}
	for _, scheme := range c.AllowedPrivateSchemes {
		odd := strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != ""
		if scheme == "" || odd || slices.Contains(forbiddenSchemes, scheme) || scheme == "http" || scheme == "https" {
			mistakes = append(mistakes,
				NewMistake("%s has %q: only lower-case schemes of applications can be allowed",
					Field("AllowedPrivateSchemes"), scheme))
		}
	}
	return mistakes
}

// IsProxyURL reports whether raw names a proxy and nothing else. Errors must not repeat raw,
// because it may hold a password.
func IsProxyURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	return err == nil && port > 0 && !strings.HasSuffix(u.Host, ":") && strings.Trim(u.Path, "/") == "" &&
		!strings.ContainsAny(raw, "?#")
}

// HasLoopbackIssuer reports whether the issuer is a loopback address.
func (c Config) HasLoopbackIssuer() bool { return loopbackIssuer(c.Issuer) }

func loopbackIssuer(raw string) bool { return loopbackHost(hostOf(hostPort(raw))) }

func hostPort(raw string) string {
	_, rest, _ := strings.Cut(raw, ":")
	return authorityOf(rest)
}

func (c Config) checkLifetimes() []error {
	var mistakes []error
	for _, l := range c.Lifetimes() {
		if *l.Value < l.Least || *l.Value > l.Most {
			mistakes = append(mistakes,
				NewMistake("%s is %s: choose from %s to %s", l.Field, *l.Value, l.Least, l.Most))
		}
	}
	if c.RefreshGrace > time.Hour {
		mistakes = append(mistakes, NewMistake("%s is %s: choose at most 1h0m0s, or a negative value to switch it off",
			Field("RefreshGrace"), c.RefreshGrace))
	}
	if c.RecheckEvery != 0 && c.RecheckEvery < time.Minute {
		mistakes = append(mistakes,
			NewMistake("%s is %s: choose at least 1m0s, or 0 to verify at refreshes only", Field("RecheckEvery"),
				c.RecheckEvery))
	}
	return mistakes
}

func (c Config) checkSecrets() (mistakes []error) {
	if len(c.Secret) == 0 && len(c.PreviousSecrets) > 0 {
		mistakes = append(mistakes,
			NewMistake("%s is set without %s: give the newest secret there", Field("PreviousSecrets"), Field("Secret")))
	}
	secrets, err := c.keeper().Secrets()
	if err != nil {
		return append(mistakes, fmt.Errorf("reading the server secrets: %w", err))
	}
	for i, secret := range secrets {
		field := Field("Secret")
		if i > 0 {
			field = "PreviousSecrets"
		}
		if len(secret) < MinSecretLength {
			mistakes = append(mistakes,
				NewMistake("%s has %d bytes: give %d random bytes or more, or use a store that keeps its own secret",
					field, len(secret), MinSecretLength))
		}
	}
	return mistakes
}

// CheckOriginsAndHosts returns an error for each allowed origin that no browser sends, and for each
// allowed host that no request can name, because such entries never match.
func CheckOriginsAndHosts(origins, hosts []string) error {
	var mistakes []error
	for _, origin := range origins {
		if err := checkOrigin(origin); err != nil {
			mistakes = append(mistakes, NewMistake("%s has %q: %s", Field("WithAllowedOrigins"), origin, err))
		}
	}
	for _, host := range hosts {
		if err := CheckHost(host); err != nil {
			mistakes = append(mistakes, NewMistake("%s has %q: %s", Field("WithAllowedHosts"), host, err))
		}
	}
	return errors.Join(mistakes...)
}

func checkOrigin(origin string) error {
	switch {
	case origin == LoopbackOrigins:
		return nil
	case origin == "*":
		return errors.New("it would allow every web page: name each origin, as scheme://host or scheme://host:port")
	case strings.Contains(origin, "*"):
		return errors.New("it is a pattern: name each origin, as scheme://host or scheme://host:port, or write " +
			"loopback for every port of this computer")
	case origin == "null":
		return errors.New(
			`it is the origin of sandboxed frames and local files, which any page can have: serve the page from its ` +
				`own origin`)
	case !printable(origin):
		return errors.New("write it as browsers send it, in ASCII (xn--…) and without spaces")
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		return errors.New("write scheme://host or scheme://host:port, for example http://localhost:6274")
	}
	if sent := comparableForm(u.Scheme + "://" + strings.TrimSuffix(u.Host, ":")); sent != origin {
		return fmt.Errorf("browsers send an origin without path and default port, in lower case: write %q", sent)
	}
	return nil
}

// CheckHost returns an error when no request can name the host.
func CheckHost(host string) error {
	switch {
	case strings.Contains(host, "*"):
		return errors.New("it is a pattern: name each host, as host or host:port")
	case host == "", strings.ContainsAny(host, "/@?#"), !printable(host):
		return errors.New("write host or host:port, without scheme and path")
	}
	return nil
}
