// Package secretfile keeps the server secrets of a store in a file, never in its database (J2). A File holds the newest secret, which seals, and
// those that it replaced, which still open. File.Create generates the first secret, File.Read returns all of them, and File.Replace generates the
// next one. The package takes no locks: the store holds its own write lock while it creates or replaces a secret.
package secretfile

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	secretLength = 32
	listTitle    = "pasteport secrets, the newest first" // the first line of a list; a file with an unused secret holds only its 32 bytes
)

// Secret is one server secret.
type Secret struct {
	DrawnAt time.Time // when it was generated; for a file without a list its modification time, which is later for a copy
	bytes   []byte
}

// Secrets are the server secrets in a file, the newest first.
type Secrets struct {
	All   []Secret
	Bytes [][]byte // of All, in the same order; callers must not write into it
	file  fs.FileInfo
}

// File is a file of server secrets. It remembers what it read last.
type File struct {
	path string
	last atomic.Pointer[Secrets]
}

// New returns the file at path, without opening it.
func New(path string) *File { return &File{path: path} }

// Path returns the name of the file.
func (f *File) Path() string { return f.path }

// Read returns the secrets. It reads the file again only when it has changed: a new secret comes as a new file.
func (f *File) Read() (*Secrets, error) {
	found, err := os.Stat(f.path)
	if err != nil {
		return nil, failed("reading the server secrets", err)
	}
	if last := f.last.Load(); last != nil && unchanged(last.file, found) {
		return last, nil
	}
	secrets, err := f.read(found)
	if err == nil {
		f.last.Store(secrets)
	}
	return secrets, err
}

func unchanged(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size()
}

func (f *File) read(found fs.FileInfo) (*Secrets, error) {
	content, err := os.ReadFile(f.path)
	if err != nil {
		return nil, failed("reading the server secrets", err)
	}
	secrets := &Secrets{file: found, All: []Secret{{found.ModTime().UTC(), content}}}
	if len(content) != secretLength {
		if secrets.All, err = parse(string(content)); err != nil {
			return nil, failed("reading the server secrets", fmt.Errorf("%s %w: restore it", f.path, err))
		}
	}
	for _, secret := range secrets.All {
		secrets.Bytes = append(secrets.Bytes, secret.bytes)
	}
	return secrets, nil
}

// IsUsed reports whether a database uses the secret: MarkUsed has converted the file to a list.
func (f *File) IsUsed() (bool, error) {
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return strings.HasPrefix(string(content), listTitle), failed("looking for the server secret", err)
}

func format(secrets []Secret) []byte {
	lines := []string{listTitle}
	for _, secret := range secrets {
		lines = append(lines, secret.DrawnAt.Format(time.RFC3339)+" "+base64.StdEncoding.EncodeToString(secret.bytes))
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

func parse(content string) (secrets []Secret, err error) {
	body, titled := strings.CutPrefix(content, listTitle+"\n")
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

func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", doing, oauth.ErrUnavailable, err)
}
