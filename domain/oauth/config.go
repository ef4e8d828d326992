package oauth

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is what a host decides about its authorization server. Every zero value means the default in its comment.
type Config struct {
	// Issuer is the public base URL, https and without a trailing slash; every URL that is published starts with it (F8).
	Issuer string
	// VerifyBearer tells whether the site knows a pasted token. This or Verifier is required.
	VerifyBearer func(token string) bool
	// Verifier also says who stands behind the token, or that the site cannot tell just now.
	Verifier BearerVerifier

	AccessTokenTTL time.Duration // 1 hour; 1 minute to 24 hours
	AuthCodeTTL    time.Duration // 5 minutes; 10 seconds to 10 minutes
	RefreshIdleTTL time.Duration // 30 days; at least 1 hour and AccessTokenTTL
	GrantTTL       time.Duration // 180 days; at most 365 days
	RefreshGrace   time.Duration // 1 minute; at most 5 minutes; negative switches it off (D27)
	TicketTTL      time.Duration // 10 minutes; at most 30 minutes

	// RecheckEvery asks the site again during use, at most this often for a grant; 0 asks at refreshes only, else 1 minute or more
	// (J8). Callers get 503 while the site cannot tell.
	RecheckEvery time.Duration

	Resource      string   // the MCP endpoint; Issuer + "/mcp"
	ResourceName  string   // shown to people; the issuer's host
	Scopes        []Scope  // one scope, "mcp"
	DefaultScopes []string // granted when a client names none: the first of Scopes

	// Secret seals tickets and host tokens: 32 bytes or more, the same in every process. When empty, the store's own is used.
	Secret []byte

	// AllowClient decides by host who may connect at all; nil lets everybody (A8).
	AllowClient func(host string) bool

	TrustedRedirectHosts          []string       // hosts to which an error may be redirected without a click (M13)
	AutoErrorRedirect             bool           // every host is trusted in this way
	AllowedPrivateSchemes         []string       // private-use redirect schemes such as "cursor" (A14)
	AllowDocumentsWithoutClientID bool           // clients whose metadata does not name itself (C23)
	PrivateKeyJWT                 bool           // clients may prove who they are by signed assertions (D33); one that does has to every time
	ClientIDPorts                 []string       // ports besides 443 that a client_id may name (C7)
	AllowAnyContentType           bool           // accepts metadata documents of any media type (C14)
	AllowNAT64                    bool           // metadata hosts may be reached through NAT64 (C19)
	DeniedPrefixes                []netip.Prefix // further networks that metadata documents are never fetched from (C19)
	AllowLoopbackIssuer           bool           // lets Issuer be http on this computer (F9)
	AllowLoopbackClients          bool           // development: metadata documents on this computer (C49); needs a loopback Issuer

	Now    func() time.Time // the one clock; the system's
	Random io.Reader        // the one source of chance; the system's
	Logger *slog.Logger     // slog.Default()
}

// Settings is a Config without mistakes, with every default filled in.
type Settings struct {
	Issuer       string
	Resource     Resource
	ResourceName string
	Catalogue    ScopeCatalogue
	Metadata     ClientMetadataRules
	ClientID     ClientIDRules
	Keys         Keys

	AccessTokenTTL, AuthCodeTTL, RefreshIdleTTL, GrantTTL, RefreshGrace, TicketTTL, RecheckEvery time.Duration

	allowClient          func(host string) bool
	trustedRedirectHosts []string
	autoErrorRedirect    bool
}

// Settings fills in the defaults. Every mistake is reported at once, by the field's name and with the remedy (F9).
func (c Config) Settings() (*Settings, error) {
	c = c.withDefaults()
	mistakes := slices.Concat(c.checkURLs(), c.checkTTLs(), c.checkScopes(), c.checkRest())
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("configuration: %w", errors.Join(mistakes...))
	}
	clientID := ClientIDRules{Ports: c.ClientIDPorts, ForbidHost: hostOf(hostPort(c.Issuer)), AllowAnyHost: c.AllowLoopbackClients}
	return &Settings{
		Issuer: c.Issuer, Resource: NewResource(c.Resource), ResourceName: c.ResourceName,
		Catalogue:      ScopeCatalogue{known: slices.Clone(c.Scopes), defaults: NewScopes(c.DefaultScopes...)},
		Metadata:       ClientMetadataRules{AllowedPrivateSchemes: c.AllowedPrivateSchemes, AllowDocumentsWithoutClientID: c.AllowDocumentsWithoutClientID, PrivateKeyJWT: c.PrivateKeyJWT, KeySets: clientID},
		ClientID:       clientID,
		Keys:           NewKeys(slices.Clone(c.Secret)),
		AccessTokenTTL: c.AccessTokenTTL, AuthCodeTTL: c.AuthCodeTTL, RefreshIdleTTL: c.RefreshIdleTTL,
		GrantTTL: c.GrantTTL, RefreshGrace: max(c.RefreshGrace, 0), TicketTTL: c.TicketTTL, RecheckEvery: c.RecheckEvery,
		allowClient: c.AllowClient, trustedRedirectHosts: c.TrustedRedirectHosts, autoErrorRedirect: c.AutoErrorRedirect,
	}, nil
}

func (c Config) withDefaults() Config {
	orElse(&c.AccessTokenTTL, time.Hour)
	orElse(&c.AuthCodeTTL, 5*time.Minute)
	orElse(&c.RefreshIdleTTL, 30*24*time.Hour)
	orElse(&c.GrantTTL, 180*24*time.Hour)
	orElse(&c.RefreshGrace, time.Minute)
	orElse(&c.TicketTTL, 10*time.Minute)
	orElse(&c.Resource, c.Issuer+"/mcp")
	orElse(&c.ResourceName, hostPort(c.Issuer))
	if len(c.Scopes) == 0 {
		c.Scopes = []Scope{{Name: "mcp", Description: "Use this site's tools in your name, as far as your token allows"}}
	}
	if len(c.DefaultScopes) == 0 {
		c.DefaultScopes = []string{c.Scopes[0].Name}
	}
	return c
}

func orElse[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

func (c Config) checkURLs() []error {
	var mistakes []error
	switch {
	case c.Issuer == "":
		mistakes = append(mistakes, errors.New("Issuer is empty: give the public https URL of this site, for example https://cms.example.com"))
	default:
		mistakes = checkURL("Issuer", c.Issuer, c.AllowLoopbackIssuer)
	}
	if c.Resource != c.Issuer+"/mcp" { // otherwise it shares the issuer's mistakes
		mistakes = append(mistakes, checkURL("Resource", c.Resource, c.AllowLoopbackIssuer)...)
		if rest, own := strings.CutPrefix(c.Resource, c.Issuer); own && (strings.HasPrefix(rest, "/oauth/") || strings.HasPrefix(rest, "/.well-known/")) {
			mistakes = append(mistakes, fmt.Errorf("Resource %q is an address of this server itself: choose another path", c.Resource))
		}
	}
	if c.AllowLoopbackClients && !loopbackIssuer(c.Issuer) {
		mistakes = append(mistakes, fmt.Errorf("AllowLoopbackClients (--dev) is set with the issuer %s: it is for development on this computer only, switch it off", c.Issuer))
	}
	return mistakes
}

// checkURL holds issuer and resource to what clients compare byte for byte (F9), and names every mistake.
func checkURL(field, raw string, loopbackAllowed bool) (mistakes []error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return []error{fmt.Errorf("%s %q is not an absolute URL: write it like https://cms.example.com", field, raw)}
	}
	port, _ := strconv.Atoi(u.Port())
	for _, check := range []struct {
		wrong  bool
		remedy string
	}{
		{u.Scheme == "http" && !loopbackIssuer(raw), "is not https: clients refuse anything else but on this computer; use the public https address"},
		{u.Scheme == "http" && loopbackIssuer(raw) && !loopbackAllowed, "is http: set AllowLoopbackIssuer if this is development on this computer, or use https"},
		{u.Scheme != "https" && u.Scheme != "http", "has another scheme: use https"},
		{u.User != nil || strings.ContainsAny(raw, "?#"), "has a user, query or fragment: leave it out"},
		{strings.HasSuffix(raw, "/"), "ends with a slash: leave it out, clients compare it byte for byte"},
		{u.Host != strings.ToLower(u.Host), "has upper-case letters in its host: write it in lower case"},
		{strings.HasSuffix(u.Host, ":") || port > 65535, "has a port that cannot be: leave it out or correct it"},
		{u.String() != raw || strings.Contains(raw, `"`) || strings.ContainsAny(u.Path, ":*"), "has characters that cannot be routed or quoted: leave them out"},
		{hasDotSegment(u.Path) || strings.Contains(u.Path, "//"), "has empty or dot segments in its path: leave them out"},
	} {
		if check.wrong {
			mistakes = append(mistakes, fmt.Errorf("%s %q %s", field, raw, check.remedy))
		}
	}
	return mistakes
}

func (c Config) checkTTLs() []error {
	var mistakes []error
	between := func(field string, value, least, most time.Duration) {
		if value < least || value > most {
			mistakes = append(mistakes, fmt.Errorf("%s is %s: choose from %s to %s", field, value, least, most))
		}
	}
	between("AccessTokenTTL", c.AccessTokenTTL, time.Minute, 24*time.Hour)
	between("AuthCodeTTL", c.AuthCodeTTL, 10*time.Second, 10*time.Minute)
	between("GrantTTL", c.GrantTTL, time.Hour, 365*24*time.Hour)
	between("RefreshIdleTTL", c.RefreshIdleTTL, max(time.Hour, c.AccessTokenTTL), 365*24*time.Hour)
	between("TicketTTL", c.TicketTTL, time.Minute, 30*time.Minute)
	if c.RefreshGrace > 5*time.Minute {
		mistakes = append(mistakes, fmt.Errorf("RefreshGrace is %s: choose at most 5m0s, or a negative value to switch it off", c.RefreshGrace))
	}
	if c.RecheckEvery != 0 && c.RecheckEvery < time.Minute {
		mistakes = append(mistakes, fmt.Errorf("RecheckEvery is %s: choose at least 1m0s, or 0 to ask at refreshes only", c.RecheckEvery))
	}
	return mistakes
}

func (c Config) checkScopes() []error {
	var mistakes []error
	names := make([]string, 0, len(c.Scopes))
	for _, scope := range c.Scopes {
		parsed, err := ParseScopes(scope.Name)
		switch {
		case err != nil || len(parsed.values) != 1:
			mistakes = append(mistakes, fmt.Errorf("Scopes has %q: a scope is one word of printable ASCII without quotes", scope.Name))
		case slices.Contains(names, scope.Name):
			mistakes = append(mistakes, fmt.Errorf("Scopes has %q twice: keep one", scope.Name))
		case scope.Name == OfflineAccess:
			mistakes = append(mistakes, errors.New("Scopes has offline_access: leave it out, it is always there"))
		}
		names = append(names, scope.Name)
	}
	for _, scope := range c.Scopes {
		for _, implied := range scope.Implies {
			if !slices.Contains(names, implied) {
				mistakes = append(mistakes, fmt.Errorf("Scopes has %q, which implies the unknown %q: add it or leave it out", scope.Name, implied))
			}
		}
	}
	for _, name := range c.DefaultScopes {
		if !slices.Contains(names, name) {
			mistakes = append(mistakes, fmt.Errorf("DefaultScopes has %q: add it to Scopes or leave it out", name))
		}
	}
	return mistakes
}

func (c Config) checkRest() []error {
	var mistakes []error
	if c.VerifyBearer == nil && c.Verifier == nil {
		mistakes = append(mistakes, errors.New("VerifyBearer is nil: give the function that tells whether your site knows a token"))
	}
	if c.VerifyBearer != nil && c.Verifier != nil {
		mistakes = append(mistakes, errors.New("VerifyBearer and Verifier are both set: keep one of them"))
	}
	if len(c.Secret) < MinSecretLength {
		mistakes = append(mistakes, fmt.Errorf("Secret has %d bytes: give %d random bytes or more, or use a store that keeps a secret of its own", len(c.Secret), MinSecretLength))
	}
	for _, port := range c.ClientIDPorts {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			mistakes = append(mistakes, fmt.Errorf("ClientIDPorts has %q: a port is a number from 1 to 65535", port))
		}
	}
	for _, host := range c.TrustedRedirectHosts {
		if host == "" || strings.ContainsAny(host, "/@?# ") {
			mistakes = append(mistakes, fmt.Errorf("TrustedRedirectHosts has %q: write host or host:port, without scheme and path", host))
		}
	}
	for _, scheme := range c.AllowedPrivateSchemes {
		odd := strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != ""
		if scheme == "" || odd || slices.Contains(forbiddenSchemes, scheme) || scheme == "http" || scheme == "https" {
			mistakes = append(mistakes, fmt.Errorf("AllowedPrivateSchemes has %q: only lower-case schemes of applications can be allowed", scheme))
		}
	}
	if c.Now == nil || c.Random == nil {
		mistakes = append(mistakes, errors.New("Now or Random is nil: leave both to bootstrap, which sets the system's"))
	}
	return mistakes
}

// CheckClient refuses with ClientNotAllowed whom the operator does not let connect (A8).
func (s *Settings) CheckClient(id ClientID) error {
	if s.allowClient != nil && !s.allowClient(hostOf(strings.ToLower(id.Host()))) {
		return Refuse(ClientNotAllowed, "this app is not allowed here")
	}
	return nil
}

// ceiling returns the most that a host token may grant (B10).
func (s *Settings) ceiling(p Principal) Scopes {
	if p.Scopes == nil {
		return s.Catalogue.Ceiling()
	}
	return s.Catalogue.Expand(NewScopes(p.Scopes...)).With(OfflineAccess)
}

func (s *Settings) trustsRedirect(target RedirectURI) bool {
	return target.Loopback() || s.autoErrorRedirect || slices.Contains(s.trustedRedirectHosts, target.Host())
}

// loopbackIssuer reports whether the URL's host is this computer.
func loopbackIssuer(raw string) bool { return loopbackHost(hostOf(hostPort(raw))) }

func hostPort(raw string) string {
	_, rest, _ := strings.Cut(raw, ":")
	return authorityOf(rest)
}
