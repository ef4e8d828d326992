package seal

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/sha256"
	"fmt"
)

// PairSealers seal to the public half of a key pair that is derived from a key of KeySize bytes.
// The public half can seal a box but not open one. Boxes use HPKE (RFC 9180) with X25519,
// HKDF-SHA256 and AES-256-GCM, and are bound to a server secret: sealing needs that secret, too.
type PairSealers struct {
	binding Binding
	tags    []Tag // the newest server secret first
}

// PairSealers returns the sealers of a binding. The kinds have to be few.
func (k KeyRing) PairSealers(b Binding) (PairSealers, error) {
	tags, err := k.Tags("pair/"+b.Kind, b.Owner)
	return PairSealers{b, tags}, err
}

// PublicKey returns the public half of the key pair of a key.
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
