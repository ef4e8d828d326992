package oauth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
)

// MinSecretLength is the least length of the server secret, in bytes.
const MinSecretLength = 32

const keyBytes = 32

// Fingerprint finds the grants that were made with one host token; without the server secret it says nothing (J10).
type Fingerprint [16]byte

// Keys derives every key from the server secret; each key has one purpose (J2).
type Keys struct{ secret []byte }

// NewKeys takes the server secret, which Config has checked.
func NewKeys(secret []byte) Keys { return Keys{secret} }

// Fingerprint returns the keyed hash of a host token.
func (k Keys) Fingerprint(host HostToken) (Fingerprint, error) {
	key, err := hkdf.Key(sha256.New, k.secret, nil, "pasteport/v1/host-fp", keyBytes)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("deriving the fingerprint key: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, host.Reveal())
	return Fingerprint(mac.Sum(nil)[:len(Fingerprint{})]), nil
}

// tickets returns the lock for what travels through the browser, bound to the issuer (B4).
func (k Keys) tickets(purpose, issuer string) (lock, error) {
	return newLock(k.secret, nil, binding{purpose, issuer})
}

// wrap returns the lock that only the holder of the secret can open: it guards the grant's data key (J2).
func (k Keys) wrap(holder Secret, grant string) (lock, error) {
	return newLock([]byte(holder.Reveal()), k.secret, binding{"wrap/" + string(holder.kind()), grant})
}

// succession returns the lock that only the holder of the rotated refresh token can open (J9).
func (k Keys) succession(old Secret, grant string) (lock, error) {
	return newLock([]byte(old.Reveal()), k.secret, binding{"successor", grant})
}

// binding says what a box is and whose; a box that is taken for another one does not open (J12).
type binding struct{ kind, owner string }

func (b binding) String() string { return "pasteport/v1/" + b.kind + "\x00" + b.owner }

// lock seals with AES-256-GCM under a random nonce that the box carries.
type lock struct {
	aead  cipher.AEAD
	bound []byte
}

func newLock(material, salt []byte, bound binding) (lock, error) {
	key, err := hkdf.Key(sha256.New, material, salt, bound.String(), keyBytes)
	if err != nil {
		return lock{}, fmt.Errorf("deriving a key: %w", err)
	}
	return lockWith(key, bound)
}

func lockWith(key []byte, bound binding) (lock, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return lock{}, fmt.Errorf("making a cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return lock{}, fmt.Errorf("making a sealing cipher: %w", err)
	}
	return lock{aead, []byte(bound.String())}, nil
}

func (l lock) seal(plain []byte) []byte { return l.aead.Seal(nil, nil, plain, l.bound) }

func (l lock) open(box []byte) ([]byte, error) {
	plain, err := l.aead.Open(nil, nil, box, l.bound)
	if err != nil {
		return nil, fmt.Errorf("opening a box: %w", err)
	}
	return plain, nil
}
