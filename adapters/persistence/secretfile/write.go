package secretfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Create draws a secret unless the file is there.
func (f *File) Create() error {
	if err := Protect(f.path); !errors.Is(err, fs.ErrNotExist) {
		return failed("looking for the server secret", err)
	}
	return writeFile(f.path, draw(), func(*os.File) error { return nil })
}

// Replace draws a new secret and keeps the ones before it, except those that were replaced at the time forget or before it.
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
		replaced = secret.DrawnAt
	}
	return f.rewrite(format(slices.Insert(kept, 0, Secret{now.UTC(), draw()})))
}

// MarkUsed rewrites a secret as a list, which marks it as used: a later start without a database then detects that the database is lost. A
// mounted file cannot be replaced and stays unmarked.
func (f *File) MarkUsed() error {
	secrets, err := f.Read()
	if err != nil {
		return err
	}
	if used, err := f.IsUsed(); used || err != nil {
		return err
	}
	err = f.rewrite(format(secrets.All))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY) {
		return nil
	}
	return err
}

func draw() []byte {
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret) // crypto/rand ends the process rather than fail
	return secret
}

// rewrite keeps the owner and the mode of the file, because the service may run as another user than the command that replaces its secret. It
// follows a link to the file.
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

// writeSynced refuses an existing name: root must not follow a link that another user has placed in the folder.
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

// Protect makes a file readable by its owner only (H7); a copy that was restored may have lost that.
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

// ProtectShared is Protect for a file that replicas share. A mounted file, such as a Kubernetes Secret, belongs to root and cannot be changed; its
// service reads it as a member of its group.
func (f *File) ProtectShared() error {
	if found, err := os.Stat(f.path); err == nil && found.Mode().Perm()&0o027 == 0 {
		return nil
	}
	return Protect(f.path)
}
