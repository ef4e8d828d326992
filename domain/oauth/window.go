package oauth

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"time"
)

// Window bounds how often something may happen within a time that begins with the first. Its name is a keyed hash, so that whoever keeps
// it does not learn what is counted, nor whose address it is.
type Window struct {
	Name   Digest
	Limit  int
	Length time.Duration
}

// WindowCounter is a Store that counts for every process that uses it: a hundred wrong guesses spread over three replicas are a hundred.
// Any error is an outage, in which nothing may pass.
type WindowCounter interface {
	// Take counts one on each of the windows, which are different ones, or on none of them while one is full, and returns how long the
	// full ones still last.
	Take(ctx context.Context, now time.Time, windows ...Window) (wait time.Duration, err error)

	// GiveBack takes back what Take has counted at that time, from those of the windows that are not over meanwhile.
	GiveBack(ctx context.Context, taken time.Time, windows ...Window) error

	// SharedByReplicas reports whether several machines count here, so that it is worth asking. DeleteExpired forgets what is over.
	SharedByReplicas() bool
}

// Window returns the window of one subject, such as an address, under a limit of this name.
func (k Keys) Window(of, subject string, limit int, length time.Duration) (Window, error) {
	names, err := each(k, func(secret []byte) (Digest, error) {
		key, err := hkdf.Key(sha256.New, secret, nil, "pasteport/v1/window\x00"+of, keyBytes)
		if err != nil {
			return Digest{}, fmt.Errorf("deriving a window key: %w", err)
		}
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, subject)
		return Digest(mac.Sum(nil)), nil
	})
	if err != nil {
		return Window{}, err
	}
	return Window{names[0], limit, length}, nil
}
