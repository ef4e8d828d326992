package oauth

import (
	"errors"
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/domain/uri"
)

// Settings is a Config that Config.Settings has validated and completed: GrantChoices begin with
// the longest, and a Lifetime that is Off is 0. Config.GrantSettings validates nothing.
type Settings struct {
	Config
	Resources []ProtectedResource // at least one; the first is the default for requests without a resource
	Keys      seal.KeyRing

	// IdentityFields are the HostFields that identify a credential: the required ones if the
	// verifiers verify all fields, otherwise the token alone. They are nil without HostFields.
	IdentityFields credential.Fields
}

// withKeys returns a copy with a snapshot of the key ring.
func (s *Settings) withKeys(keys seal.KeyRing) *Settings {
	changed := *s
	changed.Keys = keys
	return &changed
}

// Identity returns what identifies the credential of a person: the token, or the IdentityFields.
// Grants are found by the fingerprint of the Identity. A field that is not verified is not part of
// it: a person could change its value to hide grants and to get around limits.
func (s *Settings) Identity(host HostToken) HostToken {
	if len(s.HostFields) == 0 {
		return host
	}
	return HostToken{conceal(s.IdentityFields.Select(host.Values()).Encode())}
}

// CompletedBy returns the identifying values of old with the other values of latest, for a verifier
// that needs all fields.
func (s *Settings) CompletedBy(old, latest HostToken) HostToken {
	if len(s.HostFields) == 0 {
		return old
	}
	values := latest.Values()
	maps.Copy(values, s.Identity(old).Values())
	return HostToken{conceal(values.Encode())}
}

// Fingerprints returns the fingerprints of the Identity under each server secret, the newest first.
func (s *Settings) Fingerprints(host HostToken) ([]Fingerprint, error) {
	return s.Keys.Fingerprints(s.Identity(host))
}

// accessTokensUnseal reports whether access tokens can open the host token, to verify it again or
// to send it to an upstream server.
func (s *Settings) accessTokensUnseal() bool { return s.RecheckEvery > 0 || s.HostTokenInUse }

// ceiling returns the scopes of a server that a host token may grant at most.
func (s *Settings) ceiling(p Principal, at Resource) Scopes {
	if p.Scopes == nil {
		return s.ScopesOf(at).defaults.With(OfflineAccess)
	}
	return s.ScopesOf(at).Expand(NewScopes(p.Scopes...)).With(OfflineAccess)
}

// Off is a Lifetime that is switched off. Every negative value means the same.
const Off time.Duration = -1

// Lifetime is a duration of a Config with its default and bounds.
type Lifetime struct {
	Field                string
	Value                *time.Duration
	Default, Least, Most time.Duration
	MayBeOff             bool
}

// Lifetimes returns the durations of a Config.
func (c *Config) Lifetimes() []Lifetime {
	const day = 24 * time.Hour
	return []Lifetime{
		{"AccessTokenTTL", &c.AccessTokenTTL, time.Hour, time.Minute, day, false},
		{"AuthCodeTTL", &c.AuthCodeTTL, 5 * time.Minute, 10 * time.Second, 10 * time.Minute, false},
		{"GrantTTL", &c.GrantTTL, 180 * day, shortestGrant, MaxGrantTTL, false},
		{"RefreshIdleTTL", &c.RefreshIdleTTL, 30 * day, max(time.Hour, c.AccessTokenTTL), MaxGrantTTL, false},
		{"RefreshGrace", &c.RefreshGrace, 5 * time.Minute, time.Second, time.Hour, true},
		{"RecheckEvery", &c.RecheckEvery, Off, time.Minute, MaxGrantTTL, true},
	}
}

const shortestGrant = time.Hour

// MaxGrantTTL is the upper bound of GrantTTL and RefreshIdleTTL. No sealed data is needed for
// longer.
const MaxGrantTTL = 365 * 24 * time.Hour

// Link is a web page for developers or people. It is in the metadata documents and on the pages.
type Link struct {
	Name string // one of the constants below
	URL  string
}

// UnmarshalText reads "name = URL".
func (l *Link) UnmarshalText(text []byte) error {
	name, address, found := strings.Cut(string(text), " = ")
	if !found {
		return errors.New("the link has no URL")
	}
	*l = Link{Name: strings.TrimSpace(name), URL: strings.TrimSpace(address)}
	return nil
}

// MarshalText is the reverse of UnmarshalText.
func (l Link) MarshalText() ([]byte, error) { return []byte(l.Name + " = " + l.URL), nil }

// The names of links are those in the metadata of the authorization server (RFC 8414) and of the
// MCP servers (RFC 9728).
const (
	ServiceDocumentation  = "service_documentation" // for developers of clients
	OperatorPolicy        = "op_policy_uri"
	OperatorTerms         = "op_tos_uri"
	ResourceDocumentation = "resource_documentation"
	ResourcePolicy        = "resource_policy_uri"
	ResourceTerms         = "resource_tos_uri"
)

var linkNames = []string{ServiceDocumentation, OperatorPolicy, OperatorTerms, ResourceDocumentation, ResourcePolicy,
	ResourceTerms}

// Links are the links of a site, each name once.
type Links []Link

// URL returns the URL of a link, "" for none.
func (l Links) URL(name string) string {
	if at := slices.IndexFunc(l, func(one Link) bool { return one.Name == name }); at >= 0 {
		return l[at].URL
	}
	return ""
}

func (l Links) check() (found mistakes) {
	const field = "Links"
	for i, link := range l {
		u, err := url.Parse(link.URL)
		switch {
		case !slices.Contains(linkNames, link.Name):
			found.add(field, "has the unknown name %q: choose one of %s", link.Name, strings.Join(linkNames, ", "))
		case l[:i].URL(link.Name) != "":
			found.add(field, "has %s twice: keep one", link.Name)
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			found.add(field, "has %q for %s: give the address of a web page", uri.WithoutUser(link.URL), link.Name)
		}
	}
	return found
}

// Limits bounds what one address, one person and all clients together can use. A zero field has the
// default in its comment. An address is an IPv4 address or the /64 of an IPv6 one.
type Limits struct {
	// UnlimitedNetworks are the networks to which no limit by address applies.
	UnlimitedNetworks []netip.Prefix

	WrongTokens      int // 10 different wrong tokens of a network (/24, /56) in 5 minutes; more have to take turns
	MaxVerifications int // 64 tokens that one verifier checks at once; a quarter is kept for refreshes

	MaxSessions          int // 10 000 sessions of an MCP server, and streams through a gateway, in each process
	MaxSessionsPerPerson int // 100 of those sessions and streams for one person, in all clients together
	MaxGrantsPerToken    int // 100 connections made with one host token
	CallsPerMinute       int // 0, any number, of tool calls by one person at one MCP server, in each process
}

// DefaultLimits returns the limits of a Config that sets none.
func DefaultLimits() Limits {
	return Limits{
		WrongTokens:          10,
		MaxVerifications:     64,
		MaxSessions:          10_000,
		MaxSessionsPerPerson: 100,
		MaxGrantsPerToken:    100,
	}
}

// WithDefaults fills in the fields that are zero.
func (l Limits) WithDefaults() Limits {
	fields, defaults := reflect.ValueOf(&l).Elem(), reflect.ValueOf(DefaultLimits())
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			fields.Field(i).Set(defaults.Field(i))
		}
	}
	return l
}

func (l Limits) check() (found mistakes) {
	fields := reflect.ValueOf(l)
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if field.Type.Kind() == reflect.Int && fields.Field(i).Int() < 0 {
			found.add("Limits."+field.Name, "is %d: choose 1 or more", fields.Field(i).Int())
		}
	}
	for _, network := range l.UnlimitedNetworks {
		if !network.IsValid() || network.Addr().Is4In6() {
			found.add("Limits.UnlimitedNetworks", "has the invalid network %q: write networks such as 203.0.113.0/24 "+
				"or 2001:db8::/48", network)
		}
	}
	return found
}

// NearMaxGrants reports whether a host token has nine tenths of MaxGrantsPerToken.
func (l Limits) NearMaxGrants(connections int) bool { return 10*connections >= 9*l.MaxGrantsPerToken }
