package oauth

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
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

// The lifetimes of a Config that names none.
const (
	DefaultAccessTokenTTL = time.Hour
	DefaultAuthCodeTTL    = 5 * time.Minute
	DefaultRefreshIdleTTL = 30 * 24 * time.Hour
	DefaultGrantTTL       = 180 * 24 * time.Hour
	DefaultRefreshGrace   = time.Minute
	DefaultTicketTTL      = 10 * time.Minute
)

// MaxGrantTTL is the most that GrantTTL may be: nothing that is sealed is needed for longer.
const MaxGrantTTL = 365 * 24 * time.Hour

// MinSecretLength is the least length of the server secret, in bytes.
const MinSecretLength = seal.MinSecretLength

// SecretKeeper keeps the server secrets for Config.Secrets. A Store may be one.
type SecretKeeper = seal.SecretKeeper

// Fingerprint is the keyed hash of a host token by which a Store finds its grants.
type Fingerprint = seal.Fingerprint

// keeper prefers the secrets of the configuration; an empty one is there to be refused.
func (c Config) keeper() SecretKeeper {
	if len(c.Secret) == 0 && c.Secrets != nil {
		return c.Secrets
	}
	secrets := seal.FixedSecrets{slices.Clone(c.Secret)}
	for _, previous := range c.PreviousSecrets {
		secrets = append(secrets, slices.Clone(previous))
	}
	return secrets
}
