package persistence

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
)

// exists refuses a file that is missing or empty.
func exists(path string) error {
	found, err := os.Stat(path)
	if err == nil && found.Size() == 0 {
		return cmp.Or(refuseLost(path), errors.New("it is empty: \"pasteport serve\" makes a database of it"))
	}
	return err
}

// createUnlessLost is create for a service, which must not begin anew beside a used server secret.
func createUnlessLost(path string) error {
	if err := refuseLost(path); err != nil {
		return err
	}
	return create(path)
}

// create makes a missing file. One that exists is not even opened: closing it would drop the locks that this process may
// already hold on it.
func create(path string) error {
	if found, err := os.Stat(path); err == nil && found.IsDir() {
		return errors.New("it is a directory: name a file in it")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	made, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return secretfile.Protect(path)
	}
	if err != nil {
		return err
	}
	return made.Close()
}
