package oauth

import (
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/uri"
)

// Client is what requests, codes and grants know of a client; package client makes it. Codes and
// grants keep only the ID, the Name and the AuthMethod.
type Client struct {
	ID              ClientID
	Name            string // the client's own claim
	AuthMethod      AuthMethod
	DeclaresID      bool      // its document contains the ID; otherwise the document may be another client's
	MayRefresh      bool      // it does not rule out the grant type refresh_token
	DeclaresRefresh bool      // it declares that grant type
	CheckedAt       time.Time // last check of its document if it could not be fetched for this request; otherwise zero
}

// SelfRegistered stands where other clients have the host that publishes their document.
const SelfRegistered = "self-registered"

// ClientID is the raw URL of a client's metadata document. It is compared and stored as it was
// sent, without normalization.
type ClientID struct{ raw string }

// RestoreClientID returns a client_id that package client has accepted.
func RestoreClientID(raw string) ClientID { return ClientID{raw} }

// String returns the URL as it was sent.
func (id ClientID) String() string { return id.raw }

// Host returns the host, with the port if the URL has one.
func (id ClientID) Host() string { return uri.Authority(id.raw) }

// reconnecting is a parameter that ChatGPT adds to its client_id when a person reconnects.
const reconnecting = "token_endpoint_auth_method=none"

// Published returns the id without the parameter that the client adds when a person reconnects. The
// document of the client may have either id.
func (id ClientID) Published() ClientID {
	return ClientID{strings.TrimSuffix(strings.TrimSuffix(id.raw, "?"+reconnecting), "&"+reconnecting)}
}

// RedirectURI is a verified redirect_uri, byte for byte as the client sent it.
type RedirectURI struct{ raw string }

// RestoreRedirectURI returns a redirect_uri that package client has verified.
func RestoreRedirectURI(raw string) RedirectURI { return RedirectURI{raw} }

// String returns the URI as it was sent.
func (u RedirectURI) String() string { return u.raw }

// Host returns host[:port], or the scheme and a colon for a private-use scheme.
func (u RedirectURI) Host() string {
	if u.PrivateScheme() {
		scheme, _, _ := strings.Cut(u.raw, ":")
		return scheme + ":"
	}
	return uri.Authority(u.raw)
}

// Loopback reports whether the receiver is a program on the person's own computer (RFC 8252 §7.3).
func (u RedirectURI) Loopback() bool {
	return strings.HasPrefix(u.raw, "http:") && uri.IsLoopback(u.raw)
}

// PrivateScheme reports whether an application claims the URI's scheme for itself (RFC 8252 §7.1).
func (u RedirectURI) PrivateScheme() bool {
	return !strings.HasPrefix(u.raw, "https:") && !strings.HasPrefix(u.raw, "http:")
}

// HostedClient is a client whose metadata document this server publishes and uses without a fetch.
// It is a program on the person's computer, so all its redirect URIs are loopback URIs.
type HostedClient struct {
	Path         string // below client.HostedPath: lower-case letters, digits and hyphens
	Name         string
	RedirectURIs []string
}

// AuthMethod is how a client authenticates at the token and revocation endpoints. It is fixed when
// a person approves or, for a client that may choose, when the client redeems its code.
type AuthMethod string

// The methods of RFC 7591 §2, and two of our own.
const (
	PublicClient   AuthMethod = "none"             // the client_id alone, with PKCE
	PrivateKeyJWT  AuthMethod = "private_key_jwt"  // an assertion signed with a key that the client publishes
	SealedClientID AuthMethod = "sealed_client_id" // "none" of a client that registered itself

	// The methods of a client that registered itself with a secret. It may send the secret in
	// either way.
	ClientSecretBasic AuthMethod = "client_secret_basic"
	ClientSecretPost  AuthMethod = "client_secret_post"

	// NoneOrPrivateKeyJWT is the method of a client that publishes keys and also lists "none",
	// until it redeems its code.
	NoneOrPrivateKeyJWT AuthMethod = "none_or_private_key_jwt"
)

// Allows reports whether the client may authenticate with an assertion or, if assertion is false,
// without one.
func (m AuthMethod) Allows(assertion bool) bool {
	return m == NoneOrPrivateKeyJWT || assertion == (m == PrivateKeyJWT)
}

// HasSecret reports whether the client has a secret of this server.
func (m AuthMethod) HasSecret() bool { return m == ClientSecretBasic || m == ClientSecretPost }

// SelfRegistered reports whether the client registered itself, so that only its redirect URI is
// verified.
func (m AuthMethod) SelfRegistered() bool { return m == SealedClientID || m.HasSecret() }

// chosen returns the method of a client after it has redeemed its code, with or without assertion.
func (m AuthMethod) chosen(assertion bool) AuthMethod {
	switch {
	case m != NoneOrPrivateKeyJWT:
		return m
	case assertion:
		return PrivateKeyJWT
	}
	return PublicClient
}

// TokenPath is the path of the token endpoint below the issuer. The URL of the endpoint may be the
// audience of an assertion.
const TokenPath = "/oauth/token"

// ClientSecretPrefix lets secret scanners find a leaked ClientSecret.
const ClientSecretPrefix = "pps_"

// ClientSecret is the secret of an MCP server elsewhere, or of a client that registered itself. It
// prints as "[redacted]".
type ClientSecret struct{ confidential }

// NewClientSecret returns the secret that a client has sent.
func NewClientSecret(text string) ClientSecret {
	if text == "" {
		return ClientSecret{}
	}
	return ClientSecret{conceal(text)}
}

// RefuseClient returns the same refusal for every failed client authentication.
func RefuseClient(causes ...error) error {
	return Refuse(InvalidClient, "D33", "The client does not prove who it is", causes...)
}
