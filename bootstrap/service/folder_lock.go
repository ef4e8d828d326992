package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

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
