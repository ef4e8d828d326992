// Package secretfile keeps the server secrets of a store in a file, never in its database. The file
// holds the newest secret, which seals, and those that it replaced, which still open.
package secretfile

import (
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

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

const secretLength = 32

// Secret is one server secret.
type Secret struct {
	// When it was generated; for a file without a list its modification time, which is later for a
	// copy.
	GeneratedAt time.Time
	bytes       []byte
}

// Secrets are the server secrets in a file, the newest first. Callers must not write into them.
type Secrets struct {
	All          []Secret
	Bytes        [][]byte            // of All, in the same order
	Fingerprints []oauth.Fingerprint // likewise
	file         fs.FileInfo
}

var errMissing = errors.New("restore the file, or copy it from another replica and name it with server-secret; if it " +
	"is lost, \"pasteport keys rotate --forget-old\" generates another secret, and clients connect again")

// Read returns the secrets in a file: last if it has not changed since, because a new secret comes
// as a new file.
func Read(path string, last *Secrets) (_ *Secrets, err error) {
	defer func() { err = failed("reading the server secrets", err) }()
	found, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", err, errMissing)
	}
	if err != nil {
		return nil, err
	}
	if last != nil && os.SameFile(last.file, found) && last.file.ModTime().Equal(found.ModTime()) &&
		last.file.Size() == found.Size() {
		return last, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := &Secrets{file: found, All: []Secret{{found.ModTime().UTC(), content}}}
	if len(content) != secretLength { // not a lone secret, but a list
		if read.All, err = parse(string(content)); err != nil {
			return nil, fmt.Errorf("%s %w: restore it", path, err)
		}
	}
	for _, secret := range read.All {
		read.Bytes = append(read.Bytes, secret.bytes)
	}
	read.Fingerprints, err = seal.NewKeyRing(seal.FixedSecrets(read.Bytes)).SecretFingerprints()
	return read, err
}

// parse reads a line for each secret: the time of its generation and the secret in base64.
func parse(content string) (secrets []Secret, err error) {
	for line := range strings.Lines(content) {
		generated, encoded, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		at, timeErr := time.Parse(time.RFC3339, generated)
		secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if timeErr != nil || err != nil || len(secret) != secretLength {
			return nil, fmt.Errorf("is damaged in line %d, or is not one secret of %d bytes", len(secrets)+1,
				secretLength)
		}
		secrets = append(secrets, Secret{at.UTC(), secret})
	}
	if len(secrets) == 0 {
		return nil, errors.New("is empty")
	}
	return secrets, nil
}

func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", doing, oauth.ErrUnavailable, err)
}

// Create generates a secret unless the file exists.
func Create(path string) error {
	return failed("writing the server secret", writeFile(path, generate(), nil))
}

// Replace generates a new secret and keeps the earlier ones, except those that were replaced at the
// time forget or before it.
func Replace(path string, now, forget time.Time) error {
	secrets, err := Read(path, nil)
	if err != nil {
		return err
	}
	var content []byte
	next, replaced := Secret{now.UTC(), generate()}, now.Add(1)
	for _, secret := range slices.Insert(slices.Clone(secrets.All), 0, next) {
		if !replaced.After(forget) {
			break
		}
		replaced = secret.GeneratedAt // it has replaced the secret after it in the list
		content = fmt.Appendf(content, "%s %s\n", replaced.Format(time.RFC3339),
			base64.StdEncoding.EncodeToString(secret.bytes))
	}
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		err = writeFile(target, content, secrets.file)
	}
	return failed("writing the server secret", err)
}

func generate() []byte {
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret) // crypto/rand ends the process rather than fail
	return secret
}

// writeFile gives the file its name only when it is complete and on the disk. It replaces the old
// file, and keeps its owner and mode, because the service may run as another user than the command
// that replaces its secret. Without an old file, it leaves one that another process has made
// meanwhile.
func writeFile(path string, content []byte, old fs.FileInfo) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	publish := os.Rename
	if old == nil {
		publish = os.Link
	} else if err := copyOwner(old, file); err != nil {
		return errors.Join(err, file.Close())
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := publish(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Protect lets only its owner use a file; a copy that was restored may have lost that. The group
// may read a file that replicas share: a mounted one, such as a Kubernetes Secret, belongs to root
// and cannot be changed.
func Protect(path string, isShared bool) error {
	others := fs.FileMode(0o077)
	if isShared {
		others = 0o027
	}
	found, err := os.Stat(path)
	if err != nil || found.Mode().Perm()&others == 0 {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("others can read it, and this user cannot change that: %w", err)
	}
	return nil
}
