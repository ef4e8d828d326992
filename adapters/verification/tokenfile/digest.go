package tokenfile

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"golang.org/x/crypto/argon2"
)

// The cost of one hash is the minimum that OWASP recommends for argon2id: about 20 ms and 19 MiB.
const (
	memoryKiB = 19 * 1024
	passes    = 2
	lanes     = 1
	phcPrefix = "$argon2id$v=19$m=19456,t=2,p=1$"
)

// maxHashes bounds the memory of concurrent hashes to 76 MiB.
const maxHashes = 4

type (
	salt   [16]byte
	hash   [32]byte
	digest struct {
		salt salt
		hash hash
	}
)

// String returns the digest in the PHC string format.
func (d digest) String() string {
	return phcPrefix + base64.RawStdEncoding.EncodeToString(d.salt[:]) + "$" + base64.RawStdEncoding.EncodeToString(d.hash[:])
}

func newSalt() (drawn salt) {
	_, _ = rand.Read(drawn[:]) // never fails
	return drawn
}

func hashOf(token string, s salt) hash {
	return hash(argon2.IDKey([]byte(token), s[:], passes, memoryKiB, lanes, uint32(len(hash{}))))
}

// hasher limits the number of concurrent hashes.
type hasher chan struct{}

func (h hasher) hash(ctx context.Context, token string, s salt) (hash, error) {
	select {
	case h <- struct{}{}:
	case <-ctx.Done():
		return hash{}, ctx.Err()
	}
	defer func() { <-h }()
	return hashOf(token, s), nil
}
