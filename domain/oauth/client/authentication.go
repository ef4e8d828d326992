package client

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// AssertionAlgorithms returns the signature algorithms of assertions, by their names of RFC 7518
// and RFC 8037. "none" and shared secrets are never accepted.
func AssertionAlgorithms() []string { return []string{"ES256", "RS256", "PS256", "EdDSA"} }

// Credentials are the client authentication of a request to the token or revocation endpoint.
type Credentials struct {
	Client    string // the client_id; may be empty beside an assertion, which names the client too (RFC 7521 §4.2)
	Assertion string // a signed JWT; empty for a public client
	Secret    oauth.ClientSecret
}

// Assertion holds the claims of a JWT with a valid signature (RFC 7523 §3). A time that the JWT
// does not claim is zero.
type Assertion struct {
	Issuer    string
	Subject   string
	Audience  []string
	NotBefore time.Time
	ExpiresAt time.Time
	ID        string
	Algorithm string
}

const (
	assertionTTL         = time.Hour        // the longest time until exp
	assertionSkew        = 30 * time.Second // between the client's clock and ours
	maxAssertionIDLength = 256
)

// CheckAssertion refuses with InvalidClient unless the client issued the assertion about itself,
// for this server alone, and it is valid now (RFC 7523 §3).
func (r *Rules) CheckAssertion(a Assertion, client *Metadata, now time.Time) error {
	algorithms, names := AssertionAlgorithms(), []string{r.config.Issuer, r.config.Issuer + oauth.TokenPath}
	if client.algorithm != "" {
		algorithms = []string{client.algorithm}
	}
	isOurs := func(name string) bool { return slices.Contains(names, name) }
	others := slices.DeleteFunc(slices.Clone(a.Audience), isOurs)
	earliest, latest := now.Add(-assertionSkew), now.Add(assertionTTL+assertionSkew)
	switch {
	case !slices.Contains(algorithms, a.Algorithm):
		return refuseAssertion("has alg %.100q, the client signs with %q", a.Algorithm, algorithms)
	case a.Issuer != client.ID.String(), a.Subject != client.ID.String():
		return refuseAssertion("has iss %.100q and sub %.100q, the client_id is %.100q", a.Issuer, a.Subject, client.ID)
	case len(a.Audience) == 0:
		return refuseAssertion("has no aud, this server is %q", names)
	case len(others) > 0:
		return refuseAssertion("has aud %.100q, this server is %q", others[0], names)
	case a.ExpiresAt.IsZero():
		return refuseAssertion("has no exp")
	case !now.Before(a.ForgetAfter()), a.ExpiresAt.After(latest):
		return refuseAssertion("has exp %d, it must be after %d and at most %d", a.ExpiresAt.Unix(), earliest.Unix(),
			latest.Unix())
	case a.NotBefore.After(now.Add(assertionSkew)):
		return refuseAssertion("has nbf %d, it must be at most %d", a.NotBefore.Unix(), now.Add(assertionSkew).Unix())
	case a.ID == "", len(a.ID) > maxAssertionIDLength:
		return refuseAssertion("has a jti of %d bytes, it must have 1 to %d", len(a.ID), maxAssertionIDLength)
	}
	return nil
}

// Digest returns the digest under which the store records that the assertion was used.
func (a Assertion) Digest() oauth.Digest {
	return sha256.Sum256([]byte("pasteport/v1/jti\x00" + a.Subject + "\x00" + a.ID))
}

// ForgetAfter returns when the assertion expires, including the tolerance for clock skew.
func (a Assertion) ForgetAfter() time.Time { return a.ExpiresAt.Add(assertionSkew) }

func refuseAssertion(why string, values ...any) error {
	return oauth.RefuseClient(fmt.Errorf("the assertion "+why, values...))
}

// readAuthentication sets how the client authenticates, and with which keys.
func (m *Metadata) readAuthentication(d members, r *Rules) (err error) {
	if m.AuthMethod, err = d.authMethod(); err != nil || m.AuthMethod == oauth.PublicClient {
		return err
	}
	m.algorithm, _ = d["token_endpoint_auth_signing_alg"].(string)
	if address, elsewhere := d["jwks_uri"].(string); elsewhere {
		if m.KeysAt, err = r.ParseURL(address); err != nil {
			err = invalidDocument("C20", "the document's jwks_uri is not a URL that can be fetched")
		}
	} else {
		inline, _ := d["jwks"].(map[string]any)
		m.Keys, err = NewKeySet(inline)
	}
	if err != nil && m.AuthMethod == oauth.NoneOrPrivateKeyJWT { // "none" needs no keys
		m.AuthMethod, err = oauth.PublicClient, nil
	}
	return err
}

// authMethod returns the method that this server offers of those that the client declares or lists:
// NoneOrPrivateKeyJWT if it offers both, PublicClient if the client names none.
func (d members) authMethod() (oauth.AuthMethod, error) {
	declared, hasDeclared := d["token_endpoint_auth_method"]
	method, isText := declared.(string)
	supported, hasList, ok := d.list("token_endpoint_auth_methods_supported")
	switch {
	case hasDeclared && !isText, hasList && !ok:
		return "", invalidDocument("C30", "the document's authentication methods are malformed")
	case slices.Contains([]string{"client_secret_basic", "client_secret_post", "client_secret_jwt"}, method):
		return "", invalidDocument("C29",
			"the document declares authentication with a client secret, which would be public")
	case hasDeclared && hasList && !slices.Contains(supported, method):
		return "", invalidDocument("C30", "the document's authentication method is not in its own list")
	case !hasDeclared && !hasList:
		return oauth.PublicClient, nil
	}
	named := func(method oauth.AuthMethod) bool {
		return declared == string(method) || slices.Contains(supported, string(method))
	}
	algorithm, declaresAlgorithm := d["token_endpoint_auth_signing_alg"]
	name, _ := algorithm.(string)
	signs := named(oauth.PrivateKeyJWT) && (!declaresAlgorithm || slices.Contains(AssertionAlgorithms(), name))
	switch {
	case signs && named(oauth.PublicClient):
		return oauth.NoneOrPrivateKeyJWT, nil
	case signs:
		return oauth.PrivateKeyJWT, nil
	case named(oauth.PublicClient):
		return oauth.PublicClient, nil
	}
	return "", oauth.Refuse(oauth.UnsupportedClient, "C30",
		"the client authenticates in a way that this server does not offer")
}

// Key is a client's public key: a decoded JSON Web Key (RFC 7517).
type Key map[string]any

// KeySet is the set of public keys of a client (RFC 7517 §5).
type KeySet struct{ keys []Key }

var privateKeyMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// NewKeySet reads a decoded JWK set. It refuses, with oauth.InvalidClientDocument, a set that has
// anything but public keys.
func NewKeySet(members map[string]any) (KeySet, error) {
	entries, ok := members["keys"].([]any)
	if !ok {
		return KeySet{}, invalidDocument("C31", "the client's jwks is not a key set")
	}
	var set KeySet
	for _, entry := range entries {
		key, ok := entry.(map[string]any)
		private := slices.ContainsFunc(privateKeyMembers, func(member string) bool {
			_, has := key[member]
			return has
		})
		if !ok || private || key["kty"] == any("oct") {
			return KeySet{}, invalidDocument("C31", "the client's jwks holds a key that is not a public key")
		}
		set.keys = append(set.keys, key)
	}
	return set, nil
}

// KeyReference is what the header of a signature says about its key.
type KeyReference struct {
	ID        string // may be empty
	Algorithm string
}

// keyTypes are the kty and the crv of the keys of each algorithm.
var keyTypes = map[string][2]any{
	"ES256": {"EC", "P-256"},
	"RS256": {"RSA"},
	"PS256": {"RSA"},
	"EdDSA": {"OKP", "Ed25519"},
}

// Key returns the only key that has the id or, for a reference without one, fits the algorithm. It
// returns false if several keys do. The caller checks that a key with the id fits the algorithm.
func (s KeySet) Key(by KeyReference) (Key, bool) {
	var found []Key
	for _, key := range s.keys {
		use, algorithm := key["use"], key["alg"]
		fits := keyTypes[by.Algorithm] == [2]any{key["kty"], key["crv"]} && (use == nil || use == any("sig")) &&
			(algorithm == nil || algorithm == any(by.Algorithm))
		if by.ID == "" && fits || by.ID != "" && key["kid"] == any(by.ID) {
			found = append(found, key)
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
}

// secrets returns the secrets that a client with a secret may present, one for each server secret,
// the newest first. They are keyed hashes of its client_id, so that nothing is stored.
func (r *Rules) secrets(client *Metadata) (secrets []oauth.ClientSecret, err error) {
	tags, err := r.keys.Tags("client-secret", client.ID.String())
	for _, tag := range tags {
		text := oauth.ClientSecretPrefix + base64.RawURLEncoding.EncodeToString(tag[:])
		secrets = append(secrets, oauth.NewClientSecret(text))
	}
	return secrets, err
}

// Secret returns the secret of a client that registered itself with one, otherwise none.
func (r *Rules) Secret(client *Metadata) (oauth.ClientSecret, error) {
	if !client.AuthMethod.HasSecret() {
		return oauth.ClientSecret{}, nil
	}
	secrets, err := r.secrets(client)
	if err != nil {
		return oauth.ClientSecret{}, err
	}
	return secrets[0], nil
}

// CheckSecret refuses a wrong or missing secret with InvalidClient, and every secret of a client
// without one.
func (r *Rules) CheckSecret(client *Metadata, presented oauth.ClientSecret) error {
	if !client.AuthMethod.HasSecret() {
		return RefuseUnknownSecret(presented)
	}
	secrets, err := r.secrets(client)
	if err != nil {
		return err
	}
	right := 0
	for _, secret := range secrets {
		right |= subtle.ConstantTimeCompare([]byte(secret.Reveal()), []byte(presented.Reveal()))
	}
	if right == 0 {
		return oauth.RefuseClient(errors.New("the client secret is missing or wrong"))
	}
	return nil
}

// RefuseUnknownSecret refuses a secret that a client without one presents, with InvalidClient.
func RefuseUnknownSecret(presented oauth.ClientSecret) error {
	if presented == (oauth.ClientSecret{}) {
		return nil
	}
	return oauth.Refuse(oauth.InvalidClient, "D8", "this client is public and has no secret")
}
