package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"io"
	"sync"
)

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
