package oauth

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/seal"
)

// Config configures an authorization server. A zero field has the default in its comment.
type Config struct {
	// Issuer is the public base URL, https and without a trailing slash; every published URL starts
	// with it.
	Issuer string
	// VerifyBearer reports whether a pasted token is valid at the site. Set either VerifyBearer or
	// Verifier.
	VerifyBearer func(token string) bool
	// Verifier also returns the person behind the token, or an error while the site cannot verify
	// tokens.
	Verifier BearerVerifier

	// Lifetimes has their defaults and bounds.
	AccessTokenTTL time.Duration
	AuthCodeTTL    time.Duration
	RefreshIdleTTL time.Duration // at least AccessTokenTTL
	GrantTTL       time.Duration
	// GrantChoices are the times for which people may connect a client, each from 1 hour to
	// GrantTTL; the longest is the default. Without any, every connection may last GrantTTL.
	GrantChoices []time.Duration
	// RefreshTokens decides which clients get a refresh token: RefreshRequested, the default, or
	// RefreshRegistered.
	RefreshTokens string
	RefreshGrace  time.Duration // or Off

	// RecheckEvery makes the site verify the host token of a grant also while access tokens are
	// used, at most once in this time. Callers get 503 while the site cannot verify tokens. Off,
	// the default, verifies it at refreshes only.
	RecheckEvery time.Duration

	// HostTokenInUse lets access tokens open the host token, for a gateway that sends it to the
	// upstream server.
	HostTokenInUse bool

	// AcceptHostTokens lets clients send the site's own token to an MCP server in place of an
	// access token. It is verified at most once in a minute, and opens no grant.
	AcceptHostTokens bool

	// HostFields are the fields that people enter instead of one token, such as a user and a key.
	// They are sealed together. A Verifier that is not a FieldsVerifier gets the field "token".
	HostFields credential.Fields

	Resource      string            // the MCP endpoint; Issuer + "/mcp"
	ResourceName  string            // shown to people; the issuer's host, or the name of the site on its pages
	MoreServers   []ProtectedServer // additional MCP servers under this issuer
	Scopes        []Scope           // one scope, "mcp"
	DefaultScopes []string          // granted when a client names none: the first of Scopes

	ResourceSecret string // as ProtectedServer.Secret, for Resource

	// Secret is the key material for tickets and host tokens: 32 bytes or more, the same in every
	// process. When empty, the store provides it.
	Secret []byte
	// PreviousSecrets are the secrets that Secret has replaced, the newest first. They still open
	// data that was sealed with them. Remove a secret GrantTTL after it was replaced.
	PreviousSecrets [][]byte
	// Secrets provides secrets that may change at any time, instead of Secret and PreviousSecrets.
	// When both are empty, the store provides them.
	Secrets SecretKeeper

	// AllowClient reports whether clients with this client_id host, in lower case and without a
	// port, may connect; nil allows all. The host of clients that registered themselves is
	// SelfRegistered.
	AllowClient func(host string) bool

	AutoErrorRedirect             bool     // redirects errors to every host without a click
	AllowedPrivateSchemes         []string // private-use redirect schemes such as "cursor"
	AllowDocumentsWithoutClientID bool     // accepts metadata documents without a client_id

	SelfRegistration     bool           // lets clients register themselves (RFC 7591)
	ClientIDPorts        []uint16       // ports besides 443 that a client_id may name
	AllowLoopbackIssuer  bool           // lets Issuer be http on this computer
	AllowLoopbackClients bool           // development: metadata documents on this computer; needs a loopback Issuer
	HostedClients        []HostedClient // clients whose documents this server publishes

	Links  Links  // web pages about the service and its MCP servers
	Limits Limits // for each address, each person, and all clients together

	Now    func() time.Time // the clock; the system's
	Random io.Reader        // the random source; the system's
	Logger *slog.Logger     // slog.Default()
}

// Settings fills in the defaults and checks the result. Its error joins one Mistake for each wrong
// field.
func (c Config) Settings() (*Settings, error) {
	c = c.WithDefaults()
	if err := errors.Join(errors.Join(c.checkRequired()...), c.Check()); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c.RefreshGrace, c.RecheckEvery = max(c.RefreshGrace, 0), max(c.RecheckEvery, 0)
	c.GrantChoices = slices.Compact(slices.Sorted(slices.Values(c.GrantChoices)))
	slices.Reverse(c.GrantChoices)
	return c.GrantSettings(), nil
}

// Check reports the mistakes of a Config that may still be without its issuer, verifiers, server
// secret, clock and random source.
func (c Config) Check() error {
	resource := c.Resource // before it gets its default
	c = c.WithDefaults()
	mistakes := slices.Concat(c.checkLifetimes(), c.checkScopes(), c.checkHostFields(), c.Limits.check(),
		c.Links.check())
	switch {
	case c.Issuer != "":
		mistakes = slices.Concat(c.checkURLs(), mistakes, c.checkResourceSecrets())
	case resource != "":
		mistakes = append(mistakes, checkURL("Resource", resource, c.AllowLoopbackIssuer)...)
	}
	return errors.Join(mistakes...)
}

// GrantSettings returns settings that suffice to find grants in a store, to end them, and to
// register clients. They need no valid Config.
func (c Config) GrantSettings() *Settings {
	return &Settings{
		Config:         c,
		Resources:      c.ProtectedResources(),
		Keys:           c.KeyRing(),
		IdentityFields: c.identityFields(),
	}
}

// defaultPath is the path of the MCP endpoint below the issuer.
const defaultPath = "/mcp"

// WithDefaults returns the Config with a value in every field that has a default. Settings calls
// it.
func (c Config) WithDefaults() Config {
	for _, l := range c.Lifetimes() {
		*l.Value = cmp.Or(*l.Value, l.Default)
	}
	c.RefreshTokens = cmp.Or(c.RefreshTokens, RefreshRequested)
	c.Resource = cmp.Or(c.Resource, c.Issuer+defaultPath)
	c.Limits = c.Limits.WithDefaults()
	if len(c.Scopes) == 0 {
		c.Scopes = []Scope{
			{Name: "mcp", Description: "Use this site's tools in your name, within what your token allows"}}
	}
	if len(c.DefaultScopes) == 0 {
		c.DefaultScopes = []string{c.Scopes[0].Name}
	}
	return c
}

// The values of Config.RefreshTokens.
const (
	RefreshRequested  = "requested"  // clients that request OfflineAccess
	RefreshRegistered = "registered" // also those that declare the grant type refresh_token
)

// MinSecretLength is the minimum length of the server secret, in bytes.
const MinSecretLength = seal.MinSecretLength

// SecretKeeper provides the server secrets for Config.Secrets. A Store may implement it.
type SecretKeeper = seal.SecretKeeper

// Fingerprint is the keyed hash of a host token by which a Store finds its grants.
type Fingerprint = seal.Fingerprint

// KeyRing returns the keys of the server secrets.
func (c Config) KeyRing() seal.KeyRing { return seal.NewKeyRing(c.keeper()) }

// keeper returns Secret and PreviousSecrets, or Secrets if Secret is empty. If both are empty, it
// returns the empty Secret, which checkRequired refuses.
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

// identityFields returns what Settings.IdentityFields describes.
func (c Config) identityFields() credential.Fields {
	token, found := c.HostFields.Find(credential.Token)
	switch {
	case c.verifiesFields():
		return c.HostFields.Required()
	case found:
		return credential.Fields{token}
	}
	return nil
}

// verifiesFields reports whether every verifier verifies all fields.
func (c Config) verifiesFields() bool {
	_, all := c.Verifier.(FieldsVerifier)
	for _, server := range c.MoreServers {
		_, ofFields := server.Verifier.(FieldsVerifier)
		all = all && (ofFields || server.Verifier == nil)
	}
	return all
}
