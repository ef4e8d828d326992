package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
