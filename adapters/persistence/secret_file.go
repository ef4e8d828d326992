package persistence

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
)

const secretLength = 32

// secretsTitle begins a list of secrets. One that no database was begun with is in the file as it is, 32 bytes.
const secretsTitle = "pasteport secrets, the newest first"

// Secret is a server secret, and when it was drawn.
type Secret struct {
	DrawnAt time.Time // for the first one when its file was written, which is later on a copy
	bytes   []byte
}

// ReplaceSecret draws a new server secret. The ones before it are kept beside it, but those that were replaced before or at the
// given time. Whoever else replaces it waits; a process that uses the store goes by the new one from its next use.
func (s *Store) ReplaceSecret(ctx context.Context, now, forget time.Time) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		kept, err := s.KeptSecrets()
		if errors.Is(err, fs.ErrNotExist) && s.engine.server && forget.Equal(now) { // it is lost
			return errors.Join(forgetWitness(tx), makeSecret(s.secretFile))
		}
		if err != nil {
			return err
		}
		if err := s.announceSecret(tx); err != nil {
			return err
		}
		replaced := now
		for i, secret := range kept {
			if !replaced.After(forget) {
				kept = kept[:i]
				break
			}
			replaced = secret.DrawnAt
		}
		return replaceSecret(s.secretFile, formatSecrets(slices.Insert(kept, 0, Secret{now.UTC(), drawSecret()})))
	})
}

// announceSecret goes before the new file: on a server other replicas get that before they start again, and whoever uses the same file looks for
// it once somebody has committed.
func (s *Store) announceSecret(tx *gorm.DB) error {
	if s.engine.server {
		return forgetWitness(tx)
	}
	passing := witnessRow{onlyWitness + 1, []byte{0}}
	return failed("announcing the server secret", errors.Join(tx.Create(&passing).Error, tx.Delete(&passing).Error))
}

// makeSecret draws a missing secret; the caller's lock keeps others out.
func makeSecret(path string) error {
	if err := protect(path); !errors.Is(err, fs.ErrNotExist) {
		return failed("looking for the server secret", err)
	}
	return writeSecret(path, drawSecret(), func(*os.File) error { return nil })
}

// protectShared is protect for a file that replicas are given. One that is mounted, as Kubernetes mounts a Secret, belongs to root and
// cannot be changed, and its service reads it by its group.
func protectShared(path string) error {
	if found, err := os.Stat(path); err == nil && found.Mode().Perm()&0o027 == 0 {
		return nil
	}
	return protect(path)
}

func drawSecret() []byte {
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret) // crypto/rand ends the process rather than fail
	return secret
}

func formatSecrets(secrets []Secret) []byte {
	lines := []string{secretsTitle}
	for _, secret := range secrets {
		lines = append(lines, secret.DrawnAt.Format(time.RFC3339)+" "+base64.StdEncoding.EncodeToString(secret.bytes))
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

func parseSecrets(content string) (secrets []Secret, err error) {
	body, titled := strings.CutPrefix(content, secretsTitle+"\n")
	body, whole := strings.CutSuffix(body, "\n")
	if !titled || !whole {
		return nil, fmt.Errorf("has %d bytes, which are neither one secret of %d nor a list", len(content), secretLength)
	}
	for i, line := range strings.Split(body, "\n") {
		drawn, encoded, _ := strings.Cut(line, " ")
		at, timeErr := time.Parse(time.RFC3339, drawn)
		secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if timeErr != nil || err != nil || len(secret) != secretLength {
			return nil, fmt.Errorf("is damaged in line %d", i+2)
		}
		secrets = append(secrets, Secret{at.UTC(), secret})
	}
	return secrets, nil
}

// replaceSecret leaves the file its owner and mode, because the service may be another user than who replaces its secret, and a
// link to it a link.
func replaceSecret(path string, content []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return failed("looking for the server secret", err)
	}
	old, err := os.Stat(path)
	if err != nil {
		return failed("looking for the server secret", err)
	}
	return writeSecret(path, content, func(draft *os.File) error { return giveTo(old, draft) })
}

// writeSecret gives the file its name only when it is complete, prepared and on the disk.
func writeSecret(path string, content []byte, prepare func(draft *os.File) error) error {
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("writing the server secret", err)
	}
	if err := writeSynced(draft, content, prepare); err != nil {
		return failed("writing the server secret", errors.Join(err, os.Remove(draft)))
	}
	if err := os.Rename(draft, path); err != nil {
		return failed("naming the server secret", err)
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return failed("keeping the name of the server secret", err)
	}
	return failed("keeping the name of the server secret", errors.Join(folder.Sync(), folder.Close()))
}

// writeSynced writes a file of its own: root must not follow a link that another user of the folder has laid there.
func writeSynced(path string, content []byte, prepare func(*os.File) error) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = prepare(file)
	if err == nil {
		_, err = file.Write(content)
	}
	return errors.Join(err, file.Sync(), file.Close())
}
