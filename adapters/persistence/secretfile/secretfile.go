// Package secretfile keeps the server secrets of a store in a file, never in its database. A File
// holds the newest secret, which seals, and those that it replaced, which still open. File.Create
// generates the first secret, File.Read returns all of them, and File.Replace generates the next
// one. The package takes no locks: the store holds its own write lock while it creates or replaces
// a secret.
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
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	secretLength = 32
	// The first line of a list; a file with one secret may hold only its 32 bytes.
	listTitle = "pasteport secrets, the newest first"
)

// Secret is one server secret.
type Secret struct {
	// When it was generated; for a file without a list its modification time, which is later for a
	// copy.
	GeneratedAt time.Time
	bytes       []byte
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

var errMissing = errors.New("restore the file, or copy it from another replica; if it is lost, " +
	"\"pasteport keys rotate --forget-old\" generates another secret, and clients connect again")

// Read returns the secrets. It reads the file again only when it has changed: a new secret comes as
// a new file.
func (f *File) Read() (*Secrets, error) {
	found, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", err, errMissing)
	}
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

func format(secrets []Secret) []byte {
	lines := []string{listTitle}
	for _, secret := range secrets {
		lines = append(lines,
			secret.GeneratedAt.Format(time.RFC3339)+" "+base64.StdEncoding.EncodeToString(secret.bytes))
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

func parse(content string) (secrets []Secret, err error) {
	body, titled := strings.CutPrefix(content, listTitle+"\n")
	body, whole := strings.CutSuffix(body, "\n")
	if !titled || !whole {
		return nil, fmt.Errorf("has %d bytes, which are neither one secret of %d nor a list", len(content),
			secretLength)
	}
	for i, line := range strings.Split(body, "\n") {
		generated, encoded, _ := strings.Cut(line, " ")
		at, timeErr := time.Parse(time.RFC3339, generated)
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

// Create generates a secret unless the file exists.
func (f *File) Create() error {
	if err := Protect(f.path); !errors.Is(err, fs.ErrNotExist) {
		return failed("looking for the server secret", err)
	}
	return writeFile(f.path, generate(), func(*os.File) error { return nil })
}

// Replace generates a new secret and keeps the earlier ones, except those that were replaced at the
// time forget or before it.
func (f *File) Replace(now, forget time.Time) error {
	secrets, err := f.Read()
	if err != nil {
		return err
	}
	kept, replaced := slices.Clone(secrets.All), now
	for i, secret := range kept {
		if !replaced.After(forget) {
			kept = kept[:i]
			break
		}
		replaced = secret.GeneratedAt
	}
	return f.rewrite(format(slices.Insert(kept, 0, Secret{now.UTC(), generate()})))
}

func generate() []byte {
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret) // crypto/rand ends the process rather than fail
	return secret
}

// rewrite keeps the owner and the mode of the file, because the service may run as another user
// than the command that replaces its secret. It follows a link to the file.
func (f *File) rewrite(content []byte) error {
	path, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return failed("looking for the server secret", err)
	}
	old, err := os.Stat(path)
	if err != nil {
		return failed("looking for the server secret", err)
	}
	return writeFile(path, content, func(draft *os.File) error { return copyOwner(old, draft) })
}

// writeFile gives the file its name only when it is complete, prepared and on the disk.
func writeFile(path string, content []byte, prepare func(draft *os.File) error) error {
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

// writeSynced refuses an existing name: root must not follow a link that another user has placed in
// the folder.
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

// Protect makes a file readable by its owner only; a copy that was restored may have lost that.
func Protect(path string) error {
	found, err := os.Stat(path)
	if err != nil || found.Mode().Perm()&0o077 == 0 {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("others can read it, and this user cannot change that: %w", err)
	}
	return nil
}

// ProtectShared is Protect for a file that replicas share. A mounted file, such as a Kubernetes
// Secret, belongs to root and cannot be changed; its service reads it as a member of its group.
func (f *File) ProtectShared() error {
	if found, err := os.Stat(f.path); err == nil && found.Mode().Perm()&0o027 == 0 {
		return nil
	}
	return Protect(f.path)
}
