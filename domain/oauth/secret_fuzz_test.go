package oauth

import (
	"errors"
	"testing"

	"github.com/pasteport/pasteport/domain/seal"
)

// FuzzParseSecret checks that every text is either unknown or exactly what
// NewSecret returns for its fields.
func FuzzParseSecret(f *testing.F) {
	keys := seal.NewKeyRing(seal.FixedSecrets{serverSecret})
	for _, kind := range []SecretKind{AccessTokenSecret, RefreshTokenSecret, CodeSecret} {
		secret, err := NewSecret(kind, someGrant, 7, Entropy{1, 2, 3}, keys)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(kind), secret.Reveal())
		f.Add(string(kind), secret.Reveal()+"\n")
		f.Add(string(kind), secret.Reveal()[:80]+"\r\n\r\n")
		f.Add(string(kind), "ppa_"+secret.Reveal()[4:])
	}
	f.Add("", "")
	f.Fuzz(func(t *testing.T, kind, text string) {
		secret, err := ParseSecret(SecretKind(kind), text, keys)
		if errors.Is(err, ErrNotFound) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := decodeSecret(SecretKind(kind), text)
		again, err := NewSecret(SecretKind(kind), secret.Grant(), secret.number,
			Entropy(content[numberEnd:entropyEnd]), keys)
		if err != nil || again.Reveal() != text {
			t.Fatalf("%q is known, and is not what NewSecret returns: %v", text, err)
		}
	})
}
