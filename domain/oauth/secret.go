package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// SecretKind is the prefix that distinguishes access tokens, refresh tokens and authorization codes (H1).
type SecretKind string

// The prefixes let secret scanners find leaked tokens, and let the server refuse a token of the wrong kind without a lookup.
const (
	AccessTokenSecret  SecretKind = "ppa_"
	RefreshTokenSecret SecretKind = "ppr_"
	CodeSecret         SecretKind = "ppc_"
)

const (
	secretBytes  = 32
	encodedBytes = 43
)

// Secret is an access token, refresh token or authorization code in clear. It prints as "[redacted]".
type Secret struct{ confidential }

// NewSecret returns a secret of 32 bytes from random (H1).
func NewSecret(kind SecretKind, random io.Reader) (Secret, error) {
	var entropy [secretBytes]byte
	if _, err := io.ReadFull(random, entropy[:]); err != nil {
		return Secret{}, fmt.Errorf("generating a secret: %w", err)
	}
	return Secret{conceal(string(kind) + base64.RawURLEncoding.EncodeToString(entropy[:]))}, nil
}

// ParseSecret parses a text; ok is false unless NewSecret can return it for the kind.
func ParseSecret(kind SecretKind, text string) (secret Secret, ok bool) {
	encoded, found := strings.CutPrefix(text, string(kind))
	if !found {
		return Secret{}, false
	}
	if _, ok := decode32(encoded); !ok {
		return Secret{}, false
	}
	return Secret{conceal(text)}, true
}

// kind returns the prefix, which has the same length for every kind.
func (s Secret) kind() SecretKind {
	return SecretKind(s.Reveal()[:len(AccessTokenSecret)])
}

// decode32 reads 43 characters of unpadded base64url as 32 bytes. It checks the alphabet itself because Go's decoder skips
// line breaks even when strict.
func decode32(encoded string) (decoded [secretBytes]byte, ok bool) {
	var text [encodedBytes]byte
	if len(encoded) != encodedBytes || strings.IndexByte(encoded, '\r') >= 0 || strings.IndexByte(encoded, '\n') >= 0 {
		return decoded, false
	}
	copy(text[:], encoded)
	_, err := strictBase64.Decode(decoded[:], text[:])
	return decoded, err == nil
}

var strictBase64 = base64.RawURLEncoding.Strict()

// Digest is the hash by which a store finds a secret (H2).
type Digest [sha256.Size]byte

const digestLabel = "pasteport/v1/id\x00"

// Digest returns the SHA-256 of the secret with a label. No key is derived from it.
func (s Secret) Digest() Digest {
	var room [len(digestLabel) + 47]byte // avoids a heap allocation in every request
	return sha256.Sum256(append(append(room[:0], digestLabel...), s.Reveal()...))
}

// bytes returns nil for the zero Digest.
func (d Digest) bytes() []byte {
	if d == (Digest{}) {
		return nil
	}
	return d[:]
}

const redacted = "[redacted]"

// confidential is text that no formatter, encoder or logger prints (B15). The text is behind a pointer, because fmt prints unexported fields without
// calling their methods.
type confidential struct{ text *string }

func conceal(text string) confidential { return confidential{&text} }

// Reveal returns the text. Call it only where the text is used.
func (c confidential) Reveal() string {
	if c.text == nil {
		return ""
	}
	return *c.text
}

// Format hides the text from every verb of fmt.
func (c confidential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the text from JSON, XML and log/slog.
func (c confidential) MarshalText() ([]byte, error) { return []byte(redacted), nil }
