package oauth

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"
)

// AuthMethod is how a client proves at the token and revocation endpoints who it is; it is settled when a person approves.
type AuthMethod string

// The methods of RFC 7591 §2 that need no shared secret.
const (
	PublicClient  AuthMethod = "none"            // the client_id alone; PKCE and the secrecy of tokens do the rest (D11)
	PrivateKeyJWT AuthMethod = "private_key_jwt" // an assertion signed with a key that the client publishes (D33)
)

// TokenPath is where the token endpoint lies below the issuer; assertions may be addressed to it.
const TokenPath = "/oauth/token"

// AssertionAlgorithms returns what assertions may be signed with, by the names of RFC 7518 and RFC 8037: never with "none" or
// a shared secret (D33).
func AssertionAlgorithms() []string { return []string{"ES256", "RS256", "PS256", "EdDSA"} }

// Credentials are what a client says and shows at the token and revocation endpoints.
type Credentials struct {
	Client    string // the client_id; may be empty beside an assertion, which names the client too (RFC 7521 §4.2)
	Assertion string // a signed JWT; empty for a public client
}

// ClientAssertion is what a JWT with a valid signature states (RFC 7523 §3); a time is zero when it states none.
type ClientAssertion struct {
	Issuer    string
	Subject   string
	Audience  []string
	NotBefore time.Time
	ExpiresAt time.Time
	ID        string
	Algorithm string
}

const (
	assertionTTL         = 5 * time.Minute
	assertionSkew        = 30 * time.Second // between the client's clock and ours
	maxAssertionIDLength = 256
)

// Check refuses with InvalidClient what the client does not state about itself, to this server, for just now (D33).
func (a ClientAssertion) Check(client *ClientMetadata, settings *Settings, now time.Time) error {
	switch {
	case !slices.Contains(AssertionAlgorithms(), a.Algorithm), client.proof.algorithm != "" && a.Algorithm != client.proof.algorithm:
		return refuseAssertion("is signed with another algorithm")
	case a.Issuer != client.id.raw, a.Subject != client.id.raw:
		return refuseAssertion("is not the client's own")
	case len(a.Audience) != 1, a.Audience[0] != settings.Issuer && a.Audience[0] != settings.Issuer+TokenPath:
		return refuseAssertion("is not addressed to this server alone")
	case expired(a.ForgetAfter(), now), a.ExpiresAt.After(now.Add(assertionTTL + assertionSkew)):
		return refuseAssertion("has expired, lives too long or for ever")
	case a.NotBefore.After(now.Add(assertionSkew)):
		return refuseAssertion("is not valid yet")
	case a.ID == "", len(a.ID) > maxAssertionIDLength:
		return refuseAssertion("has no usable jti")
	}
	return nil
}

// Digest returns under which the store remembers that the assertion was used (H4).
func (a ClientAssertion) Digest() Digest {
	return sha256.Sum256([]byte("pasteport/v1/jti\x00" + a.Subject + "\x00" + a.ID))
}

// ForgetAfter returns when the assertion would be refused anyway.
func (a ClientAssertion) ForgetAfter() time.Time { return a.ExpiresAt.Add(assertionSkew) }

func refuseAssertion(why string) error { return RefuseClient(errors.New("the assertion " + why)) }

// RefuseClient is the one answer to whoever does not prove to be the client (D32, D33).
func RefuseClient(causes ...error) error {
	return Refuse(InvalidClient, "D33", "The client does not prove who it is", causes...)
}
