package oauth

import (
	"cmp"
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

	"github.com/pasteport/pasteport/domain/seal"
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
	RefreshIdleTTL time.Duration // 30 days; at least 1 hour and AccessTokenTTL, at most 365 days
	GrantTTL       time.Duration // 180 days; 1 hour to 365 days
	RefreshGrace   time.Duration // 1 minute; at most 5 minutes; negative switches it off (D27)
	TicketTTL      time.Duration // 10 minutes; 1 to 30 minutes

	// RecheckEvery asks the site again during use, at most this often for a grant; 0 asks at refreshes only, else 1 minute or more
	// (J8). Callers get 503 while the site cannot tell.
	RecheckEvery time.Duration

	// HostTokenInUse lets access tokens open the host token, for a gateway that sends it to the upstream that gave it out (J13, U6).
	HostTokenInUse bool

	Resource      string            // the MCP endpoint; Issuer + "/mcp"
	ResourceName  string            // shown to people; the issuer's host
	MoreServers   []ProtectedServer // further MCP servers under this issuer (U1)
	Scopes        []Scope           // one scope, "mcp"
	DefaultScopes []string          // granted when a client names none: the first of Scopes

	// Secret seals tickets and host tokens: 32 bytes or more, the same in every process. When empty, the store's own is used.
	Secret []byte
	// PreviousSecrets are those that Secret has replaced, the newest first: they still open what was sealed with them. Drop one
	// when it was replaced GrantTTL ago.
	PreviousSecrets [][]byte
	// Secrets keeps them instead, and may change them at any time. The store's own when Secret is empty.
	Secrets SecretKeeper

	// AllowClient reports whether clients may connect whose client_id has this host, in lower case and without its port; nil allows all (A8).
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
	MetadataProxy                 string         // URL of the HTTP proxy through which metadata documents are fetched, with its password; "" for none (C51)
	AllowLoopbackIssuer           bool           // lets Issuer be http on this computer (F9)
	AllowLoopbackClients          bool           // development: metadata documents on this computer (C49); needs a loopback Issuer

	Limits Limits // what one address, one person and all of them together may use

	Now    func() time.Time // the one clock; the system's
	Random io.Reader        // the one source of chance; the system's
	Logger *slog.Logger     // slog.Default()
}

// Settings fills in the defaults. Every mistake is reported at once, by the field's name and with the remedy (F9).
func (c Config) Settings() (*Settings, error) {
	c = c.WithDefaults()
	mistakes := slices.Concat(c.checkURLs(), c.checkTTLs(), c.checkScopes(), c.checkRest(), c.Limits.check())
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("configuration: %w", errors.Join(mistakes...))
	}
	clientID := ClientIDRules{Ports: c.ClientIDPorts, ForbidHost: hostOf(hostPort(c.Issuer)), AllowAnyHost: c.AllowLoopbackClients}
	return &Settings{
		Issuer: c.Issuer, Resources: c.resources(),
		Catalogue:      ScopeCatalogue{known: slices.Clone(c.Scopes), defaults: NewScopes(c.DefaultScopes...)},
		Metadata:       ClientMetadataRules{AllowedPrivateSchemes: c.AllowedPrivateSchemes, AllowDocumentsWithoutClientID: c.AllowDocumentsWithoutClientID, PrivateKeyJWT: c.PrivateKeyJWT, KeySets: clientID},
		ClientID:       clientID,
		Keys:           seal.NewKeyRing(c.keeper()),
		Limits:         c.Limits,
		AccessTokenTTL: c.AccessTokenTTL, AuthCodeTTL: c.AuthCodeTTL, RefreshIdleTTL: c.RefreshIdleTTL,
		GrantTTL: c.GrantTTL, RefreshGrace: max(c.RefreshGrace, 0), TicketTTL: c.TicketTTL, RecheckEvery: c.RecheckEvery, HostTokenInUse: c.HostTokenInUse,
		allowClient: c.AllowClient, trustedRedirectHosts: c.TrustedRedirectHosts, autoErrorRedirect: c.AutoErrorRedirect,
	}, nil
}

// WithDefaults fills in what is left out, which Settings does by itself.
func (c Config) WithDefaults() Config {
	orElse(&c.AccessTokenTTL, DefaultAccessTokenTTL)
	orElse(&c.AuthCodeTTL, DefaultAuthCodeTTL)
	orElse(&c.RefreshIdleTTL, DefaultRefreshIdleTTL)
	orElse(&c.GrantTTL, DefaultGrantTTL)
	orElse(&c.RefreshGrace, DefaultRefreshGrace)
	orElse(&c.TicketTTL, DefaultTicketTTL)
	orElse(&c.Resource, c.Issuer+"/mcp")
	orElse(&c.ResourceName, hostPort(c.Issuer))
	c.Limits = c.Limits.WithDefaults()
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
		mistakes = append(mistakes, NewMistake("%s is empty: give the public https URL of this site, for example https://cms.example.com", Field("Issuer")))
	default:
		mistakes = checkURL("Issuer", c.Issuer, c.AllowLoopbackIssuer)
	}
	mistakes = append(mistakes, c.checkResources()...)
	if c.AllowLoopbackClients && !loopbackIssuer(c.Issuer) {
		mistakes = append(mistakes, NewMistake("%s is set with the issuer %s: it is for development on this computer only, switch it off", Field("AllowLoopbackClients"), withoutUser(c.Issuer)))
	}
	return mistakes
}

// checkURL holds issuer and resource to what clients compare byte for byte (F9), and names every mistake.
func checkURL(field Field, raw string, loopbackAllowed bool) (mistakes []error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return []error{NewMistake("%s %q is not an absolute URL: write it like https://cms.example.com", field, withoutUser(raw))}
	}
	if u.Scheme == "http" && loopbackIssuer(raw) && !loopbackAllowed {
		mistakes = append(mistakes, NewMistake("%s %q is http: set %s if this is development on this computer, or use https", field, withoutUser(raw), Field("AllowLoopbackIssuer")))
	}
	port, _ := strconv.Atoi(u.Port())
	for _, check := range []struct {
		wrong  bool
		remedy string
	}{
		{u.Scheme == "http" && !loopbackIssuer(raw), "is not https: clients refuse anything else but on this computer; use the public https address"},
		{u.Scheme != "https" && u.Scheme != "http", "has another scheme: use https"},
		{u.User != nil || strings.ContainsAny(raw, "?#"), "has a user, query or fragment: leave it out"},
		{strings.HasSuffix(raw, "/"), "ends with a slash: leave it out, clients compare it byte for byte"},
		{u.Host != strings.ToLower(u.Host), "has upper-case letters in its host: write it in lower case"},
		{strings.HasSuffix(u.Host, ":") || port > 65535, "has a port that cannot be: leave it out or correct it"},
		{u.String() != raw || strings.Contains(raw, `"`) || strings.ContainsAny(u.Path, ":*"), "has characters that cannot be routed or quoted: leave them out"},
		{hasDotSegment(u.Path) || strings.Contains(u.Path, "//"), "has empty or dot segments in its path: leave them out"},
	} {
		if check.wrong {
			mistakes = append(mistakes, NewMistake("%s %q %s", field, withoutUser(raw), check.remedy))
		}
	}
	return mistakes
}

// withoutUser is a URL that may be repeated, because a password is left out.
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
			mistakes = append(mistakes, NewMistake("%s has %q: a scope is one word of printable ASCII without quotes", Field("Scopes"), scope.Name))
		case slices.Contains(names, scope.Name):
			mistakes = append(mistakes, NewMistake("%s has %q twice: keep one", Field("Scopes"), scope.Name))
		case scope.Name == OfflineAccess:
			mistakes = append(mistakes, NewMistake("%s has offline_access: leave it out, it is always there", Field("Scopes")))
		}
		names = append(names, scope.Name)
	}
	for _, scope := range c.Scopes {
		for _, implied := range scope.Implies {
			if !slices.Contains(names, implied) {
				mistakes = append(mistakes, NewMistake("%s has %q, which implies the unknown %q: add it or leave it out", Field("Scopes"), scope.Name, implied))
			}
		}
	}
	for _, name := range c.DefaultScopes {
		if !slices.Contains(names, name) {
			mistakes = append(mistakes, NewMistake("%s has %q: add it to %s or leave it out", Field("DefaultScopes"), name, Field("Scopes")))
		}
	}
	return mistakes
}

func (c Config) checkRest() []error {
	var mistakes []error
	if c.VerifyBearer == nil && c.Verifier == nil {
		mistakes = append(mistakes, NewMistake("%s is nil: give the function that tells whether your site knows a token", Field("VerifyBearer")))
	}
	if c.VerifyBearer != nil && c.Verifier != nil {
		mistakes = append(mistakes, NewMistake("%s and %s are both set: keep one of them", Field("VerifyBearer"), Field("Verifier")))
	}
	mistakes = append(mistakes, c.checkSecrets()...)
	if c.MetadataProxy != "" && !isProxyURL(c.MetadataProxy) {
		mistakes = append(mistakes, NewMistake("%s is no URL of an HTTP proxy: write http://host:3128 or https://host:3128, with user:password@ before "+
			"the host if the proxy asks for them, %%2F for a slash of the password and so on, and nothing behind the port", Field("MetadataProxy")))
	}
	for _, port := range c.ClientIDPorts {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			mistakes = append(mistakes, NewMistake("%s has %q: a port is a number from 1 to 65535", Field("ClientIDPorts"), port))
		}
	}
	for _, host := range c.TrustedRedirectHosts {
		if host == "" || strings.ContainsAny(host, "/@?# ") {
			mistakes = append(mistakes, NewMistake("%s has %q: write host or host:port, without scheme and path", Field("TrustedRedirectHosts"), host))
		}
	}
	for _, scheme := range c.AllowedPrivateSchemes {
		odd := strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != ""
		if scheme == "" || odd || slices.Contains(forbiddenSchemes, scheme) || scheme == "http" || scheme == "https" {
			mistakes = append(mistakes, NewMistake("%s has %q: only lower-case schemes of applications can be allowed", Field("AllowedPrivateSchemes"), scheme))
		}
	}
	if c.Now == nil || c.Random == nil {
		mistakes = append(mistakes, NewMistake("%s or %s is nil: leave both to bootstrap, which sets the system's", Field("Now"), Field("Random")))
	}
	return mistakes
}

// isProxyURL reports whether raw names a proxy and nothing else. Errors must not repeat raw, because it may hold a password.
func isProxyURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	return err == nil && port > 0 && !strings.HasSuffix(u.Host, ":") && strings.Trim(u.Path, "/") == "" && !strings.ContainsAny(raw, "?#")
}

// OnThisComputer reports whether the issuer is an address that only this computer reaches.
func (c Config) OnThisComputer() bool { return loopbackIssuer(c.Issuer) }

// loopbackIssuer reports whether the URL's host is this computer.
func loopbackIssuer(raw string) bool { return loopbackHost(hostOf(hostPort(raw))) }

func hostPort(raw string) string {
	_, rest, _ := strings.Cut(raw, ":")
	return authorityOf(rest)
}
