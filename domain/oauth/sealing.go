package oauth

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"
)

const keyBytes = 32

// Fingerprint finds the grants that were made with one host token; without the server secret it says nothing (J10). It also tells
// server secrets apart.
type Fingerprint [16]byte

func (f Fingerprint) bytes() []byte {
	if f == (Fingerprint{}) {
		return nil
	}
	return f[:]
}

// Keys derives every key from the server secrets; each key has one purpose (J2). The newest secret seals, and every one opens.
type Keys struct {
	keeper SecretKeeper
	known  *sync.Map // of derivation, by what they are for
}

// derivation is what is the same for everybody as long as the secrets are.
type derivation[T any] struct {
	secrets [][]byte
	made    []T
}

// NewKeys takes the keeper of the secrets, which Config has checked.
func NewKeys(keeper SecretKeeper) Keys { return Keys{keeper, new(sync.Map)} }

// Fingerprints returns the keyed hashes of a host token, the one under the newest secret first: a grant is found by one of them.
func (k Keys) Fingerprints(host HostToken) ([]Fingerprint, error) {
	tags, err := k.tags("pasteport/v1/host-fp", host.Reveal())
	if err != nil {
		return nil, fmt.Errorf("deriving the fingerprint keys: %w", err)
	}
	prints := make([]Fingerprint, 0, len(tags))
	for _, tag := range tags {
		prints = append(prints, Fingerprint(tag[:len(Fingerprint{})]))
	}
	return prints, nil
}

// tags are keyed hashes of a text, which may be in parts, for one purpose, the one under the newest secret first.
func (k Keys) tags(purpose string, parts ...string) ([]tag, error) {
	hashes, err := once(k, purpose, func(secret []byte) (*keyedHash, error) {
		key, err := hkdf.Key(sha256.New, secret, nil, purpose, keyBytes)
		return newKeyedHash(key), err
	})
	if err != nil {
		return nil, err
	}
	tags := make([]tag, 0, len(hashes))
	for _, hash := range hashes {
		tags = append(tags, hash.of(parts...))
	}
	return tags, nil
}

// Fingerprint returns the keyed hash under which a new grant will be found.
func (k Keys) Fingerprint(host HostToken) (Fingerprint, error) {
	prints, err := k.Fingerprints(host)
	if err != nil {
		return Fingerprint{}, err
	}
	return prints[0], nil
}

// Prints tell server secrets apart without saying anything about them, the newest first.
func (k Keys) Prints() ([]Fingerprint, error) {
	return each(k, func(secret []byte) (Fingerprint, error) {
		key, err := hkdf.Key(sha256.New, secret, nil, "pasteport/v1/print", len(Fingerprint{}))
		if err != nil {
			return Fingerprint{}, fmt.Errorf("deriving the print of a secret: %w", err)
		}
		return Fingerprint(key), nil
	})
}

// Code returns the authorization code for an approval of the ticket with the host token: the same however often the form is sent under one server secret, so that
// any of the answers opens the one grant (B13). To anybody without the newest server secret and the host token it is as good as drawn.
func (k Keys) Code(ticket *Ticket, host HostToken) (Secret, error) {
	tags, err := k.tags("pasteport/v1/code", ticket.id, "\x00", host.Reveal())
	if err != nil {
		return Secret{}, fmt.Errorf("deriving a code: %w", err)
	}
	return NewSecret(CodeSecret, bytes.NewReader(tags[0][:]))
}

// Subject names a person whom the site leaves without a name by the fingerprint of their token. Whoever has got such a name
// before, under a secret that is still kept, keeps it.
func (k Keys) Subject(host HostToken, before string) (string, error) {
	prints, err := k.Fingerprints(host)
	if err != nil {
		return "", err
	}
	for _, print := range prints {
		if hex.EncodeToString(print[:]) == before {
			return before, nil
		}
	}
	return hex.EncodeToString(prints[0][:]), nil
}

// tickets returns the locks for what travels through the browser, bound to the issuer (B4).
func (k Keys) tickets(purpose, issuer string) (locks, error) {
	bound := binding{purpose, issuer}
	return once(k, bound, func(secret []byte) (lock, error) { return newLock(secret, bound) })
}

// wrap returns the locks that only the holder of the secret can open: they guard the grant's data key (J2).
func (k Keys) wrap(holder Secret, grant string) (locks, error) {
	return k.heldBy(holder, binding{"wrap/" + string(holder.kind()), grant})
}

// succession returns the locks that only the holder of the rotated refresh token can open (J9).
func (k Keys) succession(old Secret, grant string) (locks, error) {
	return k.heldBy(old, binding{"successor", grant})
}

// heldBy returns the locks of one holder, whose keys are HKDF with the server secret as salt (RFC 5869): its first step is an HMAC with the salt as
// its key.
func (k Keys) heldBy(holder Secret, bound binding) (locks, error) {
	extracts, err := once(k, "extraction", func(salt []byte) (*keyedHash, error) { return newKeyedHash(salt), nil })
	if err != nil {
		return nil, err
	}
	return derived(extracts, func(extract *keyedHash) (lock, error) {
		extracted := extract.of(holder.Reveal())
		key, err := hkdf.Expand(sha256.New, extracted[:], bound.String(), keyBytes)
		if err != nil {
			return lock{}, fmt.Errorf("deriving a key: %w", err)
		}
		return lockWith(key, bound)
	})
}

// tag is a keyed hash.
type tag [sha256.Size]byte

// keyedHash is HMAC-SHA256 under one key (RFC 2104). It keeps some that have taken the key in already.
type keyedHash struct{ macs sync.Pool }

type keyedMAC struct {
	hash.Hash
	room tag
}

func newKeyedHash(key []byte) *keyedHash {
	own := bytes.Clone(key)
	return &keyedHash{sync.Pool{New: func() any { return &keyedMAC{Hash: hmac.New(sha256.New, own)} }}}
}

func (h *keyedHash) of(parts ...string) tag {
	mac := h.macs.Get().(*keyedMAC)
	for _, part := range parts {
		_, _ = io.WriteString(mac, part)
	}
	sum := tag(mac.Sum(mac.room[:0]))
	mac.Reset()
	clear(mac.room[:]) // it may be a key
	h.macs.Put(mac)
	return sum
}

// asOfNow are the same keys after one look at the secrets, for whoever needs several of them at once. A look from before a grant was read may be
// older than the secret that it was sealed with (I22).
func (k Keys) asOfNow() (Keys, error) {
	secrets, err := k.secrets()
	return Keys{FixedSecrets(secrets), k.known}, err
}

// each derives one thing from each secret, the newest first.
func each[T any](k Keys, derive func(secret []byte) (T, error)) ([]T, error) {
	secrets, err := k.secrets()
	if err != nil {
		return nil, err
	}
	return derived(secrets, derive)
}

// once is each for what needs nothing but the secrets: it is derived anew when they are others.
func once[T any](k Keys, purpose any, derive func(secret []byte) (T, error)) ([]T, error) {
	secrets, err := k.secrets()
	if err != nil {
		return nil, err
	}
	if found, known := k.known.Load(purpose); known && slices.EqualFunc(found.(derivation[T]).secrets, secrets, bytes.Equal) {
		return found.(derivation[T]).made, nil
	}
	made, err := derived(secrets, derive)
	if err == nil {
		own, _ := derived(secrets, func(secret []byte) ([]byte, error) { return bytes.Clone(secret), nil })
		k.known.Store(purpose, derivation[T]{own, made})
	}
	return made, err
}

// secrets are never none.
func (k Keys) secrets() ([][]byte, error) {
	secrets, err := k.keeper.Secrets()
	if err != nil {
		return nil, fmt.Errorf("reading the server secrets: %w", err)
	}
	if len(secrets) == 0 {
		return nil, errors.New("reading the server secrets: there is none")
	}
	return secrets, nil
}

func derived[S, T any](from []S, derive func(S) (T, error)) ([]T, error) {
	all := make([]T, 0, len(from))
	for _, each := range from {
		one, err := derive(each)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// locks are one purpose's for each secret: the first one seals, and each may open.
type locks []lock

func (l locks) seal(plain []byte) []byte { return l[0].seal(plain) }

func (l locks) open(box []byte) (plain []byte, err error) {
	for _, lock := range l {
		if plain, err = lock.open(box); err == nil {
			return plain, nil
		}
	}
	return nil, err
}

// binding says what a box is and whose; a box that is taken for another one does not open (J12).
type binding struct{ kind, owner string }

func (b binding) String() string { return "pasteport/v1/" + b.kind + "\x00" + b.owner }

// lock seals with AES-256-GCM under a random nonce that the box carries.
type lock struct {
	aead  cipher.AEAD
	bound []byte
}

func newLock(material []byte, bound binding) (lock, error) {
	key, err := hkdf.Key(sha256.New, material, nil, bound.String(), keyBytes)
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
