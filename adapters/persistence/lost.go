package persistence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"gorm.io/gorm"
)

// isUsed reports that a database was begun with the server secret in a file: markUsed has made a list of it.
func isUsed(secretFile string) (bool, error) {
	content, err := os.ReadFile(secretFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return strings.HasPrefix(string(content), secretsTitle), failed("looking for the server secret", err)
}

// markUsed rewrites the secret file in list form, which marks it as used: a later start without a database is then known to have lost it.
// The write lock keeps others from replacing the secret meanwhile. A file that cannot be replaced, because it is mounted, stays unmarked.
func (s *Store) markUsed() error {
	if used, err := isUsed(s.secretFile); used || err != nil {
		return err
	}
	err := s.transaction(context.Background(), func(*gorm.DB) error {
		kept, err := s.KeptSecrets()
		if err != nil {
			return err
		}
		if used, err := isUsed(s.secretFile); used || err != nil {
			return err
		}
		return replaceSecret(s.secretFile, formatSecrets(kept))
	})
	if slices.ContainsFunc([]error{fs.ErrPermission, syscall.EROFS, syscall.EBUSY}, func(mounted error) bool { return errors.Is(err, mounted) }) {
		return nil
	}
	return err
}

// refuseLost refuses a file that is missing or empty beside a secret that a database was begun with: SQLite would make a new database of it
// and delete the log of the old one. The secret is looked at first, because it is marked behind the first commit.
func refuseLost(path string) error {
	used, err := isUsed(path + secretSuffix)
	if err != nil || !used {
		return err
	}
	found, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && found.Size() == 0 {
		return errLost(path)
	}
	return nil
}

func errLost(path string) error {
	return fmt.Errorf("it is missing or empty, but its server secret, %s, has been used: restore the database from a backup; "+
		"to begin anew without it, delete that file as well, and everybody connects again", path+secretSuffix)
}
