// Package jose verifies the client assertions of private_key_jwt: Reader checks a signed JWT (RFC
// 7515, RFC 7519) with the client's key.
package jose

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/pasteport/pasteport/domain/oauth/client"
)

// Reader is a client.AssertionReader.
type Reader struct{}

var _ client.AssertionReader = Reader{}

// assertionTypes are the values of typ, a media type without "application/" (RFC 7515 §4.1.9). A
// JWT of another type was signed for another purpose.
var assertionTypes = []string{"jwt", "client-authentication+jwt", "oauth-client-auth+jwt"}

// ReadAssertion implements client.AssertionReader. Before the signature is verified, it uses only
// the key ID, the algorithm and the type of the header.
func (Reader) ReadAssertion(assertion string, keyOf func(client.KeyReference) (client.Key, error)) (
	client.Assertion, error) {
	var accepted []jose.SignatureAlgorithm
	for _, name := range client.AssertionAlgorithms() {
		accepted = append(accepted, jose.SignatureAlgorithm(name))
	}
	token, err := jwt.ParseSigned(assertion, accepted)
	if err != nil {
		return client.Assertion{}, fmt.Errorf("%w: %w", client.ErrBadAssertion, err)
	}
	header := token.Headers[0] // a compact JWT has exactly one
	if typ, present := header.ExtraHeaders[jose.HeaderType]; present {
		name, _ := typ.(string)
		if !slices.Contains(assertionTypes, strings.TrimPrefix(strings.ToLower(name), "application/")) {
			return client.Assertion{}, fmt.Errorf("%w: its typ is %.100q, it must be absent or one of %q",
				client.ErrBadAssertion, name, assertionTypes)
		}
	}
	published, err := keyOf(client.KeyReference{ID: header.KeyID, Algorithm: header.Algorithm})
	if err != nil {
		return client.Assertion{}, fmt.Errorf("finding the key of an assertion: %w", err)
	}
	key, err := verificationKey(published, header.Algorithm)
	if err != nil {
		return client.Assertion{}, fmt.Errorf("%w: %w", client.ErrBadAssertion, err)
	}
	var claims jwt.Claims
	if err := token.Claims(key, &claims); err != nil {
		return client.Assertion{}, fmt.Errorf("%w: %w", client.ErrBadAssertion, err)
	}
	return client.Assertion{
		Issuer:    claims.Issuer,
		Subject:   claims.Subject,
		Audience:  claims.Audience,
		NotBefore: claims.NotBefore.Time(),
		ExpiresAt: claims.Expiry.Time(),
		ID:        claims.ID,
		Algorithm: header.Algorithm,
	}, nil
}

// verificationKey decodes a key and checks its use and alg members (RFC 7517 §4.2, §4.4).
func verificationKey(published client.Key, algorithm string) (any, error) {
	encoded, err := json.Marshal(published)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	var key jose.JSONWebKey
	if err := key.UnmarshalJSON(encoded); err != nil {
		return nil, fmt.Errorf("decode the key: %w", err)
	}
	public, isRSA := key.Key.(*rsa.PublicKey)
	switch {
	case !key.Valid(), !key.IsPublic():
		return nil, errors.New("the key is not a valid public key")
	case key.Use != "" && key.Use != "sig", key.Algorithm != "" && key.Algorithm != algorithm:
		return nil, errors.New("the key is for another use or algorithm")
	case isRSA && public.N.BitLen() < 2048: // RFC 7518 §3.3; the library refuses keys that are too long
		return nil, errors.New("the key is too short")
	}
	return key.Key, nil
}
