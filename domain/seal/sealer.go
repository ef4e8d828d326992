package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// Binding is what a box is and whose. A box opens under the binding with which it was sealed only (J12).
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

// Sealer seals with AES-256-GCM under a random nonce, with which the box begins.
type Sealer struct {
	aead cipher.AEAD
	info []byte
}

// NewSealer returns the sealer of a random key of KeySize bytes.
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

func deriveSealer(secret []byte, b Binding) (Sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, b.info(), KeySize)
	if err != nil {
		return Sealer{}, fmt.Errorf("deriving a key: %w", err)
	}
	return NewSealer(key, b)
}

// Seal returns a box with the text.
func (s Sealer) Seal(plain []byte) []byte { return s.aead.Seal(nil, nil, plain, s.info) }

// Open returns the text of a box.
func (s Sealer) Open(box []byte) ([]byte, error) {
	plain, err := s.aead.Open(nil, nil, box, s.info)
	if err != nil {
		return nil, fmt.Errorf("opening a box: %w", err)
	}
	return plain, nil
}
