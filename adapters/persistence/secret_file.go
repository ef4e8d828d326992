package persistence

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const secretLength = 32

// Secret returns the server secret: 32 random bytes in a file beside the database and never in it (J2).
func (s *Store) Secret() ([]byte, error) {
	secret, err := os.ReadFile(s.secretFile)
	if err != nil {
		return nil, fmt.Errorf("reading the server secret: %w", err)
	}
	if len(secret) != secretLength {
		return nil, fmt.Errorf("reading the server secret: %s has %d bytes instead of %d, restore it", s.secretFile, len(secret), secretLength)
	}
	return secret, nil
}

// makeSecret draws a missing secret. It takes its name only when it is complete, and the caller's lock keeps others out.
func makeSecret(path string) error {
	if err := protect(path); !errors.Is(err, fs.ErrNotExist) {
		return failed("looking for the server secret", err)
	}
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret) // crypto/rand ends the process rather than fail
	draft := path + ".new"
	if err := writeSynced(draft, secret); err != nil {
		return fmt.Errorf("writing the server secret: %w", err)
	}
	return failed("naming the server secret", os.Rename(draft, path))
}

func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}
