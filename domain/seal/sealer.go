package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// PairSealers seal to the public half of a key pair that is derived from a key of KeySize bytes.
// The public half can seal a box but not open one. Boxes use HPKE (RFC 9180) with X25519,
// HKDF-SHA256 and AES-256-GCM, and are bound to a server secret: sealing needs that secret, too.
type PairSealers struct {
	binding Binding
	tags    []Tag // the newest server secret first
}

// PairSealers returns the sealers of a binding. Like purposes of Tags, the kinds have to be few.
func (k KeyRing) PairSealers(b Binding) (PairSealers, error) {
	tags, err := k.Tags("pair/"+b.Kind, b.Owner)
	return PairSealers{b, tags}, err
}

// PublicKey returns the public half of the key pair that is derived from a key and a binding.
func PublicKey(key []byte, b Binding) ([]byte, error) {
	private, err := privateKey(key, b)
	if err != nil {
		return nil, err
	}
	return private.PublicKey().Bytes(), nil
}

func privateKey(key []byte, b Binding) (hpke.PrivateKey, error) {
	seed, err := hkdf.Expand(sha256.New, key, "pair/"+b.info(), KeySize)
	if err != nil {
		return nil, fmt.Errorf("deriving a seed: %w", err)
	}
	defer clear(seed)
	private, err := hpke.DHKEM(ecdh.X25519()).DeriveKeyPair(seed)
	if err != nil {
		return nil, fmt.Errorf("deriving a key pair: %w", err)
	}
	return private, nil
}

// Seal encrypts plain for the holder of the key with this public half.
func (p PairSealers) Seal(public, plain []byte) ([]byte, error) {
	key, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("reading a public key: %w", err)
	}
	return hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), p.info(p.tags[0]), plain)
}

// Open decrypts a box that was sealed under any of the server secrets.
func (p PairSealers) Open(key, box []byte) (plain []byte, err error) {
	private, err := privateKey(key, p.binding)
	if err != nil {
		return nil, err
	}
	for _, tag := range p.tags {
		plain, err = hpke.Open(private, hpke.HKDFSHA256(), hpke.AES256GCM(), p.info(tag), box)
		if err == nil {
			return plain, nil
		}
	}
	return nil, fmt.Errorf("opening a box: %w", err)
}

func (p PairSealers) info(tag Tag) []byte { return append([]byte(p.binding.info()+"\x00"), tag[:]...) }

// PackTexts joins texts with length prefixes, because escaping would make the largest request too
// large for its form.
func PackTexts(texts ...string) (packed []byte) {
	for _, text := range texts {
		packed = strconv.AppendInt(packed, int64(len(text)), 10)
		packed = append(packed, ':')
		packed = append(packed, text...)
	}
	return packed
}

// UnpackTexts is the reverse of PackTexts.
func UnpackTexts(packed []byte) (texts []string, err error) {
	for rest := string(packed); rest != ""; {
		length, after, _ := strings.Cut(rest, ":")
		end, err := strconv.Atoi(length)
		if err != nil || end < 0 || end > len(after) {
			return nil, errors.New("it is cut off")
		}
		// Clone, so that a stored text does not keep all of them in memory.
		texts, rest = append(texts, strings.Clone(after[:end])), after[end:]
	}
	return texts, nil
}
