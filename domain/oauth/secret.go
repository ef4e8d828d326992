package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/pasteport/pasteport/domain/seal"
)

// SecretKind is the prefix that distinguishes access tokens, refresh tokens and codes.
type SecretKind string

// The prefixes let secret scanners find leaked tokens, and let the server refuse a token of the
// wrong kind at once.
const (
	AccessTokenSecret  SecretKind = "ppa_"
	RefreshTokenSecret SecretKind = "ppr_"
	CodeSecret         SecretKind = "ppc_"
)

// The layout of a secret behind its prefix, before base64url:
//
//	id 16 bytes | number 4 bytes, big endian | entropy 32 bytes | tag 8 bytes
const (
	idSize      = 16
	numberEnd   = idSize + 4
	entropyEnd  = numberEnd + 32
	secretSize  = entropyEnd + 8
	encodedSize = secretSize / 3 * 4 // secretSize is a multiple of 3, so no text has padding or spare bits
)

const secretTagPurpose = "secret-tag"

// Entropy is the secret part of a code or token: 256 random bits.
type Entropy [32]byte

// NewEntropy reads an Entropy.
func NewEntropy(random io.Reader) (entropy Entropy, err error) {
	if _, err := io.ReadFull(random, entropy[:]); err != nil {
		return Entropy{}, fmt.Errorf("generating a secret: %w", err)
	}
	return entropy, nil
}

// Secret is an access token, refresh token or authorization code in clear. It names its grant, and
// its tag proves that this server issued it. It prints as "[redacted]".
type Secret struct {
	confidential
	grant  string
	number uint32
}

// NewSecret returns a secret of a grant. The number is the generation of a refresh token, the count
// of access tokens that the grant has issued, or 0 for a code.
func NewSecret(kind SecretKind, grant string, number uint32, entropy Entropy, keys seal.KeyRing) (Secret, error) {
	id, err := hex.DecodeString(grant)
	if err != nil || len(id) != idSize {
		return Secret{}, fmt.Errorf("issuing a secret: %q is not the id of a grant", grant)
	}
	content := binary.BigEndian.AppendUint32(append(make([]byte, 0, secretSize), id...), number)
	content = append(content, entropy[:]...)
	tags, err := keys.Tags(secretTagPurpose, string(kind), string(content))
	if err != nil {
		return Secret{}, fmt.Errorf("tagging a secret: %w", err)
	}
	content = append(content, tags[0][:secretSize-entropyEnd]...)
	return Secret{conceal(string(kind) + base64.RawURLEncoding.EncodeToString(content)), grant, number}, nil
}

// ErrForeignSecret is ErrNotFound for a secret that no server secret of the ring has tagged.
var ErrForeignSecret = fmt.Errorf("%w: no server secret has tagged it", ErrNotFound)

// ParseSecret parses the text of a secret. It returns ErrNotFound for another format, and
// ErrForeignSecret if this server did not issue the secret. Any other error is an outage.
func ParseSecret(kind SecretKind, text string, keys seal.KeyRing) (Secret, error) {
	content, ok := decodeSecret(kind, text)
	if !ok {
		return Secret{}, ErrNotFound
	}
	tags, err := keys.Tags(secretTagPurpose, string(kind), string(content[:entropyEnd]))
	if err != nil {
		return Secret{}, fmt.Errorf("checking the tag of a secret: %w", err)
	}
	for _, tag := range tags {
		if subtle.ConstantTimeCompare(tag[:secretSize-entropyEnd], content[entropyEnd:]) == 1 {
			return secretOf(text, content), nil
		}
	}
	return Secret{}, ErrForeignSecret
}

// restoreSecret returns the secret with a content that was authenticated in another way, such as by
// the box that contained it.
func restoreSecret(kind SecretKind, content []byte) Secret {
	return secretOf(string(kind)+base64.RawURLEncoding.EncodeToString(content), content)
}

// content returns the decoded bytes behind the prefix, which take less space than the text.
func (s Secret) content() []byte {
	content, _ := decodeSecret(s.kind(), s.Reveal())
	return content
}

func secretOf(text string, content []byte) Secret {
	return Secret{conceal(text), hex.EncodeToString(content[:idSize]),
		binary.BigEndian.Uint32(content[idSize:numberEnd])}
}

// decodeSecret decodes the text behind the prefix. It checks the length of the text, because Go's
// decoder skips line breaks.
func decodeSecret(kind SecretKind, text string) (content []byte, ok bool) {
	encoded, found := strings.CutPrefix(text, string(kind))
	if !found || len(encoded) != encodedSize {
		return nil, false
	}
	content, err := base64.RawURLEncoding.DecodeString(encoded)
	return content, err == nil && len(content) == secretSize
}

// Grant returns the id that a grant shares with its code.
func (s Secret) Grant() string { return s.grant }

// kind returns the prefix, which has the same length for every kind.
func (s Secret) kind() SecretKind { return SecretKind(s.Reveal()[:len(AccessTokenSecret)]) }

// Digest is the hash that a store keeps of a secret.
type Digest [sha256.Size]byte

const digestLabel = "pasteport/v1/id\x00"

// Digest returns the SHA-256 of the secret with a label. No key is derived from it.
func (s Secret) Digest() Digest { return DigestOf(s.Reveal()) }

// DigestOf returns the Digest of the text of a secret.
func DigestOf(text string) Digest { return sha256.Sum256([]byte(digestLabel + text)) }

// bytes returns nil for the zero Digest.
func (d Digest) bytes() []byte {
	if d == (Digest{}) {
		return nil
	}
	return d[:]
}

const redacted = "[redacted]"

// confidential is text that no formatter, encoder or logger prints. The text is behind a pointer,
// because fmt prints unexported fields without calling their methods.
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
