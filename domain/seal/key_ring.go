package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
)

const (
	// KeySize is the length of every key, in bytes.
	KeySize = 32

	// MinSecretLength is the least length of a server secret, in bytes.
	MinSecretLength = 32

	label = "pasteport/v1/" // begins the HKDF info of every key
)

// SecretKeeper keeps the server secret, and those that it has replaced for as long as something made with them may live. A store that is a
// SecretKeeper saves the host from configuring a secret (J2).
type SecretKeeper interface {
	// Secrets returns the secrets, the newest first, each of MinSecretLength bytes or more. A KeyRing calls it at every use, so that every
	// process that uses the store takes a new secret at once: what another process has just sealed with it would look lost for good (J6).
	// An error is an outage and no statement about what was sealed.
	Secrets() ([][]byte, error)
}

// FixedSecrets keeps secrets that do not change while the program runs, the newest first.
type FixedSecrets [][]byte

// Secrets implements SecretKeeper.
func (s FixedSecrets) Secrets() ([][]byte, error) { return s, nil }

// Confidential is a text that prints as something else, such as a token.
type Confidential interface {
	// Reveal returns the text.
	Reveal() string
}

// KeyRing derives every key from the server secrets; each key has one purpose (J2). It is safe for concurrent use.
type KeyRing struct {
	keeper SecretKeeper
	cache  *sync.Map // of derived, by purpose
}

// derived is the result of one derivation from each of the secrets.
type derived[T any] struct {
	secrets [][]byte
	results []T
}

// NewKeyRing returns the key ring of a keeper.
func NewKeyRing(keeper SecretKeeper) KeyRing { return KeyRing{keeper, new(sync.Map)} }

// Snapshot returns a ring with the secrets of now. A change that needs several keys takes one, so that all of them come from the same
// secrets. Take it after the grant was read: an older one may lack the secret with which the grant was sealed (I22).
func (k KeyRing) Snapshot() (KeyRing, error) {
	secrets, err := k.secrets()
	return KeyRing{FixedSecrets(secrets), k.cache}, err
}

// Sealers returns the sealers of a binding, which are cached. The bindings are few, such as one for each kind of form (B4).
func (k KeyRing) Sealers(b Binding) (Sealers, error) {
	return cached(k, b, func(secret []byte) (Sealer, error) { return deriveSealer(secret, b) })
}

// HolderSealers returns the sealers that only the holder of a secret text can derive, such as a token (J2, J9). The key is HKDF (RFC 5869)
// of the text with the server secret as salt; its first step is an HMAC whose key is the salt.
func (k KeyRing) HolderSealers(holder Confidential, b Binding) (Sealers, error) {
	extracts, err := cached(k, "extract", func(salt []byte) (*keyedHash, error) { return newKeyedHash(salt), nil })
	if err != nil {
		return nil, err
	}
	return mapEach(extracts, func(extract *keyedHash) (Sealer, error) {
		extracted := extract.of(holder.Reveal())
		key, err := hkdf.Expand(sha256.New, extracted[:], b.info(), KeySize)
		if err != nil {
			return Sealer{}, fmt.Errorf("deriving a key: %w", err)
		}
		return NewSealer(key, b)
	})
}

// secrets returns at least one secret.
func (k KeyRing) secrets() ([][]byte, error) {
	secrets, err := k.keeper.Secrets()
	if err != nil {
		return nil, fmt.Errorf("reading the server secrets: %w", err)
	}
	if len(secrets) == 0 {
		return nil, errors.New("reading the server secrets: there is none")
	}
	return secrets, nil
}

// forEachSecret derives one result from each secret, the newest first.
func forEachSecret[T any](k KeyRing, derive func(secret []byte) (T, error)) ([]T, error) {
	secrets, err := k.secrets()
	if err != nil {
		return nil, err
	}
	return mapEach(secrets, derive)
}

// cached is forEachSecret for results that depend on the secrets only. It derives again when the secrets have changed.
func cached[T any](k KeyRing, purpose any, derive func(secret []byte) (T, error)) ([]T, error) {
	secrets, err := k.secrets()
	if err != nil {
		return nil, err
	}
	if entry, found := k.cache.Load(purpose); found && slices.EqualFunc(entry.(derived[T]).secrets, secrets, bytes.Equal) {
		return entry.(derived[T]).results, nil
	}
	results, err := mapEach(secrets, derive)
	if err == nil {
		k.cache.Store(purpose, derived[T]{copies(secrets), results})
	}
	return results, err
}

// copies protects the cache from a keeper that overwrites the secrets which it has returned.
func copies(secrets [][]byte) [][]byte {
	all := make([][]byte, 0, len(secrets))
	for _, secret := range secrets {
		all = append(all, bytes.Clone(secret))
	}
	return all
}

func mapEach[S, T any](from []S, derive func(S) (T, error)) ([]T, error) {
	results := make([]T, 0, len(from))
	for _, source := range from {
		result, err := derive(source)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}
