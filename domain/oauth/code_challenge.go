package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// codeChallenge is the S256 challenge of RFC 7636.
type codeChallenge struct{ encoded string }

// parseCodeChallenge accepts S256 only and refuses with InvalidRequest.
func parseCodeChallenge(challenge, method string) (codeChallenge, error) {
	switch {
	case challenge == "":
		return codeChallenge{}, Refuse(InvalidRequest, "A19", "the code_challenge is missing")
	case method != "S256":
		return codeChallenge{}, Refuse(InvalidRequest, "A20", "the code_challenge_method has to be S256")
	}
	if _, ok := decode32(challenge); !ok {
		return codeChallenge{},
			Refuse(InvalidRequest, "A21", "the code_challenge is not the base64url form of a SHA-256")
	}
	return codeChallenge{challenge}, nil
}

// decode32 reads 43 characters of unpadded base64url as 32 bytes. It checks for line breaks itself
// because Go's decoder skips them, even when strict.
func decode32(encoded string) (decoded [32]byte, ok bool) {
	if len(encoded) != 43 || strings.ContainsAny(encoded, "\r\n") {
		return decoded, false
	}
	_, err := base64.RawURLEncoding.Strict().Decode(decoded[:], []byte(encoded))
	return decoded, err == nil
}

const (
	minVerifierLength  = 43
	maxVerifierLength  = 128
	verifierCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)

// verifiedBy reports whether verifier is well-formed and hashes to the challenge (RFC 7636 §4.6).
func (c codeChallenge) verifiedBy(verifier string) bool {
	if len(verifier) < minVerifierLength || len(verifier) > maxVerifierLength ||
		strings.Trim(verifier, verifierCharacters) != "" {
		return false
	}
	challenge, ok := decode32(c.encoded)
	proof := sha256.Sum256([]byte(verifier))
	return ok && subtle.ConstantTimeCompare(proof[:], challenge[:]) == 1
}
