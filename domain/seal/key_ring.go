// Package seal derives keys from the server secret, and encrypts and authenticates data with them.
// Start reading at KeyRing.
//
// A KeyRing reads the server secrets from a SecretKeeper and derives one key for each purpose from
// each secret, with HKDF-SHA256 (RFC 5869). New boxes and tags use the newest secret. Those of a
// replaced secret stay valid while the keeper still returns it. A KeyRing provides
//
//	Sealers      encrypt boxes with AES-256-GCM, for one purpose and one owner: browser forms,
//	             messages between replicas, and with HolderSealers data that only the holder of a
//	             token can open
//	PairSealers  encrypt boxes for the holder of a key, knowing only its public half
//	Tag          a keyed hash of a text, such as a session ID with its owner
//	Fingerprint  a short keyed hash, by which a store finds the grants of a host token
//
// A box is a random nonce followed by the ciphertext. Its Binding, the purpose and the owner, is
// part of its key and of its associated data, so that a box does not open for another purpose or
// owner.
package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
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
	cache  *sync.Map // a derived[T] for each purpose: a Binding, or a text
}

// derived is a cache entry: one result for each secret.
type derived[T any] struct {
	secrets [][]byte
	results []T
}

// NewKeyRing returns the key ring of a keeper.
func NewKeyRing(keeper SecretKeeper) KeyRing { return KeyRing{keeper, new(sync.Map)} }

// Snapshot returns a ring with the present secrets. Use one snapshot for all keys of a state
// change, and take it after reading the grant: an earlier one may lack the secret with which the
// grant was sealed.
func (k KeyRing) Snapshot() (KeyRing, error) {
	secrets, err := k.secrets()
	return KeyRing{FixedSecrets(clone(secrets)), k.cache}, err
}

// clone copies secrets that outlive a call, after which a keeper may overwrite its slices.
func clone(secrets [][]byte) (copies [][]byte) {
	for _, secret := range secrets {
		copies = append(copies, bytes.Clone(secret))
	}
	return copies
}

// Sealers returns the sealers of a binding. It caches them forever, so use it for a fixed set of
// bindings, such as one for each form.
func (k KeyRing) Sealers(b Binding) (Sealers, error) {
	return cached(k, b, func(secret []byte) (Sealer, error) { return deriveSealer(secret, b) })
}

// HolderSealers returns sealers that only the holder of a secret text, such as a token, can derive.
// Each key is HKDF-SHA256 of the text with a server secret as the salt. HKDF-Extract is an HMAC
// keyed with the salt (RFC 5869 §2.2), so every holder uses the same keyedHash of a server secret.
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
		k.cache.Store(purpose, derived[T]{clone(secrets), results})
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

const sessionTagBytes = 16

// BindSession appends a tag to a session ID that binds it to its owner, so that no other owner can
// use it. The bound ID is also valid after a restart and at other replicas, because verifying the
// tag needs only the server secret.
func (k KeyRing) BindSession(session, owner string) (string, error) {
	tags, err := k.sessionTags(session, owner)
	if err != nil {
		return "", err
	}
	return session + "." + encodeTag(tags[0]), nil
}

// OpenSession returns the session ID without its tag; ok is false if the tag does not bind it to
// this owner.
func (k KeyRing) OpenSession(bound, owner string) (session string, ok bool, err error) {
	at := strings.LastIndexByte(bound, '.')
	if at < 0 {
		return "", false, nil
	}
	tags, err := k.sessionTags(bound[:at], owner)
	for _, tag := range tags {
		ok = ok || hmac.Equal([]byte(encodeTag(tag)), []byte(bound[at+1:]))
	}
	if err != nil || !ok {
		return "", false, err
	}
	return bound[:at], true, nil
}

func (k KeyRing) sessionTags(session, owner string) ([]Tag, error) {
	return k.Tags("session", owner, "\x00", session) // no owner has a zero byte
}

func encodeTag(t Tag) string { return base64.RawURLEncoding.EncodeToString(t[:sessionTagBytes]) }

// SealMessage seals a message from one replica to another under a name that both use. Only replicas
// with the same server secret can create or open messages, and a message opens only under its name.
func (k KeyRing) SealMessage(name string, plain []byte) ([]byte, error) {
	sealers, err := k.messageSealers(name)
	if err != nil {
		return nil, err
	}
	return sealers.Seal(plain), nil
}

// OpenMessage opens a message that was sealed under the name.
func (k KeyRing) OpenMessage(name string, box []byte) ([]byte, error) {
	sealers, err := k.messageSealers(name)
	if err != nil {
		return nil, err
	}
	return sealers.Open(box)
}

// messageSealers caches nothing, because the number of names is unbounded.
func (k KeyRing) messageSealers(name string) (Sealers, error) {
	return forEachSecret(k, func(secret []byte) (Sealer, error) {
		return deriveSealer(secret, Binding{"message", name})
	})
}

// Tag is a keyed hash (HMAC-SHA256). It reveals nothing about its text to a reader without the
// server secret.
type Tag [sha256.Size]byte

// Tags returns the keyed hashes of a text for one purpose, one for each server secret, the newest
// first. The text may come in parts, which are joined. The keys are cached, so the purposes have to
// be few.
func (k KeyRing) Tags(purpose string, parts ...string) ([]Tag, error) {
	hashes, err := cached(k, label+purpose, func(secret []byte) (*keyedHash, error) {
		key, err := hkdf.Key(sha256.New, secret, nil, label+purpose, KeySize)
		return newKeyedHash(key), err
	})
	if err != nil {
		return nil, err
	}
	tags := make([]Tag, 0, len(hashes))
	for _, hash := range hashes {
		tags = append(tags, hash.of(parts...))
	}
	return tags, nil
}

// keyedHash is HMAC-SHA256 under one key (RFC 2104). It keeps hashes for reuse, because a new one
// costs more than hashing a token.
type keyedHash struct{ idle sync.Pool }

func newKeyedHash(key []byte) *keyedHash {
	kept := bytes.Clone(key)
	return &keyedHash{sync.Pool{New: func() any { return hmac.New(sha256.New, kept) }}}
}

func (h *keyedHash) of(parts ...string) (tag Tag) {
	mac := h.idle.Get().(hash.Hash)
	defer h.idle.Put(mac)
	mac.Reset()
	for _, part := range parts {
		_, _ = io.WriteString(mac, part)
	}
	mac.Sum(tag[:0])
	return tag
}
