package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/pasteport/pasteport/bootstrap/settings"
)

// MakeDataDir creates the data folder if it is missing. Other users cannot read it, because it
// holds the server secret. It refuses a folder with a database that this user cannot write.
func MakeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data folder (--data): %w", err)
	}
	for _, path := range append([]string{dir}, databaseFiles(filepath.Join(dir, "*.db"))...) {
		if err := checkAccess(path); err != nil {
			return fmt.Errorf("opening the data folder: %w, or choose another folder with --data", err)
		}
	}
	return nil
}

// databaseFiles returns the existing files of SQLite databases.
func databaseFiles(pattern string) (files []string) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		found, _ := filepath.Glob(pattern + suffix) // fails for a malformed pattern only, which finds nothing
		files = append(files, found...)
	}
	return files
}

// checkAccess returns an error with the owner if this user may not write a file or folder. The log
// of a database may vanish meanwhile, because a service that ends removes it.
func checkAccess(path string) error {
	if err := writable(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be written: %w%s: give it to this user with chown", path, err,
			settings.OwnerOf(path))
	}
	return nil
}

// lockFolder locks the data folder for services of one issuer, because the tokens of one issuer are
// worth nothing at another. The first service notes its issuer in the folder, and services that
// start beside it compare theirs.
func lockFolder(dir, issuer string) (*flock.Flock, error) {
	lock, note := flock.New(filepath.Join(dir, "issuer.lock"),
		flock.SetPermissions(0o600)), filepath.Join(dir, "issuer")
	alone, err := lock.TryLock()
	if alone {
		err = errors.Join(os.WriteFile(note, []byte(issuer), 0o600), lock.Unlock())
	}
	if err == nil {
		err = lock.RLock()
	}
	if err != nil {
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
	noted, err := os.ReadFile(note)
	if err == nil && string(noted) != issuer {
		err = fmt.Errorf("a service with the issuer %s runs on the data folder %s: stop it, or "+
			"name another folder with --data", noted, dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}
