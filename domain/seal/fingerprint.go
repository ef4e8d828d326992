package seal

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// Fingerprint is a keyed hash of 128 bits. A store finds the grants of a host token by its
// fingerprint, and replicas compare the fingerprints of their server secrets.
type Fingerprint [16]byte

// Bytes returns nil for the zero Fingerprint.
func (f Fingerprint) Bytes() []byte {
	if f == (Fingerprint{}) {
		return nil
	}
	return f[:]
}

// Fingerprints returns the fingerprints of a host token, one for each server secret, the newest
// first. A grant of the token has one of them.
func (k KeyRing) Fingerprints(hostToken Confidential) ([]Fingerprint, error) {
	tags, err := k.Tags("host-fp", hostToken.Reveal())
	if err != nil {
		return nil, err
	}
	prints := make([]Fingerprint, 0, len(tags))
	for _, tag := range tags {
		prints = append(prints, Fingerprint(tag[:len(Fingerprint{})]))
	}
	return prints, nil
}

// Fingerprint returns the fingerprint of a host token under the newest secret, for a new grant.
func (k KeyRing) Fingerprint(hostToken Confidential) (Fingerprint, error) {
	prints, err := k.Fingerprints(hostToken)
	if err != nil {
		return Fingerprint{}, err
	}
	return prints[0], nil
}

// SecretFingerprints returns the fingerprints of the server secrets themselves, the newest first.
func (k KeyRing) SecretFingerprints() ([]Fingerprint, error) {
	return forEachSecret(k, func(secret []byte) (Fingerprint, error) {
		key, err := hkdf.Key(sha256.New, secret, nil, label+"print", len(Fingerprint{}))
		if err != nil {
			return Fingerprint{}, fmt.Errorf("deriving the fingerprint of a secret: %w", err)
		}
		return Fingerprint(key), nil
	})
}
