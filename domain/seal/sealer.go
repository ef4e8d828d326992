package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// Binding is the purpose and the owner of a box. A box opens only under the binding with which it
// was sealed.
type Binding struct{ Kind, Owner string }

func (b Binding) info() string { return label + b.Kind + "\x00" + b.Owner }

// Sealers are the sealers of one binding, one for each server secret, the newest first.
type Sealers []Sealer

// Seal seals with the newest secret.
func (s Sealers) Seal(plain []byte) []byte { return s[0].Seal(plain) }

// Open opens a box that was sealed with any of the secrets.
func (s Sealers) Open(box []byte) (plain []byte, err error) {
	for _, sealer := range s {
		if plain, err = sealer.Open(box); err == nil {
			return plain, nil
		}
	}
	return nil, err
}

// Sealer encrypts with AES-256-GCM. A box is a random nonce followed by the ciphertext.
type Sealer struct {
	aead cipher.AEAD
	info []byte
}

// NewSealer returns the sealer for a key of KeySize random bytes. The binding is the associated
// data of its boxes.
func NewSealer(key []byte, b Binding) (Sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return Sealer{}, fmt.Errorf("making a cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return Sealer{}, fmt.Errorf("making a sealing cipher: %w", err)
	}
	return Sealer{aead, []byte(b.info())}, nil
}

// deriveSealer derives the key of a binding from a server secret.
func deriveSealer(secret []byte, b Binding) (Sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, b.info(), KeySize)
	if err != nil {
		return Sealer{}, fmt.Errorf("deriving a key: %w", err)
	}
	return NewSealer(key, b)
}

// Seal encrypts plain and returns the box.
func (s Sealer) Seal(plain []byte) []byte { return s.aead.Seal(nil, nil, plain, s.info) }

// Open decrypts a box. It fails if the box was sealed with another key or binding, or was changed.
func (s Sealer) Open(box []byte) ([]byte, error) {
	plain, err := s.aead.Open(nil, nil, box, s.info)
	if err != nil {
		return nil, fmt.Errorf("opening a box: %w", err)
	}
	return plain, nil
}
