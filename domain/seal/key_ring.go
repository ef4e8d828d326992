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

	// MinSecretLength is the minimum length of a server secret, in bytes.
	MinSecretLength = 32

	label = "pasteport/v1/" // prefix of the HKDF info of every key
)

// SecretKeeper returns the server secret, and replaced secrets while grants may still need them.
// With a store that implements SecretKeeper a host does not have to configure a secret.
type SecretKeeper interface {
	// Secrets returns the secrets, the newest first, each of MinSecretLength bytes or more. A
	// KeyRing calls it for every operation, so that every process uses a new secret immediately.
	// With an old secret a process could not open the box that another one has just sealed, and
	// would end the grant. An error means an outage: the KeyRing returns it, and no grant ends.
	Secrets() ([][]byte, error)
}

// FixedSecrets is a SecretKeeper whose secrets do not change, the newest first.
type FixedSecrets [][]byte

// Secrets implements SecretKeeper.
func (s FixedSecrets) Secrets() ([][]byte, error) { return s, nil }

// Confidential is a secret text, such as a token. Printing the value does not print the text.
type Confidential interface {
	// Reveal returns the text.
	Reveal() string
}

// KeyRing derives keys from the server secrets, a separate key for each purpose. It is safe for
// concurrent use.
type KeyRing struct {
	keeper SecretKeeper
	cache  *sync.Map // derived values by purpose
}

// derived is a cache entry: one result for each secret.
type derived[T any] struct {
	secrets [][]byte
	results []T
}

// NewKeyRing returns the key ring of a keeper.
func NewKeyRing(keeper SecretKeeper) KeyRing { return KeyRing{keeper, new(sync.Map)} }

// Snapshot returns a ring whose secrets do not change any more. Use one snapshot for all keys of a
// state change. Take it after reading the grant: an earlier snapshot may lack the secret with which
// the grant was sealed.
func (k KeyRing) Snapshot() (KeyRing, error) {
	secrets, err := k.secrets()
	return KeyRing{FixedSecrets(secrets), k.cache}, err
}

// Sealers returns the sealers of a binding. It caches them forever, so use it for a fixed set of
// bindings, such as one for each form.
func (k KeyRing) Sealers(b Binding) (Sealers, error) {
	return cached(k, b, func(secret []byte) (Sealer, error) { return deriveSealer(secret, b) })
}

// HolderSealers returns sealers that only the holder of a secret text, such as a token, can derive.
// Each key is HKDF-SHA256 of the text with a server secret as the salt. HKDF-Extract is an HMAC
// keyed with the salt (RFC 5869 §2.2), so one keyedHash serves every holder.
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

// secrets returns the keeper's secrets, and an error if there is none.
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

// cached is forEachSecret with a cache by purpose. It derives again after the secrets have changed.
func cached[T any](k KeyRing, purpose any, derive func(secret []byte) (T, error)) ([]T, error) {
	secrets, err := k.secrets()
	if err != nil {
		return nil, err
	}
	if entry, found := k.cache.Load(purpose); found &&
		slices.EqualFunc(entry.(derived[T]).secrets, secrets, bytes.Equal) {
		return entry.(derived[T]).results, nil
	}
	results, err := mapEach(secrets, derive)
	if err == nil {
		var copies [][]byte // because a keeper may overwrite the slices that it has returned
		for _, secret := range secrets {
			copies = append(copies, bytes.Clone(secret))
		}
		k.cache.Store(purpose, derived[T]{copies, results})
	}
	return results, err
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
