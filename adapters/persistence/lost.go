package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
)

// refuseLost refuses a database that is missing or empty beside a used server secret: SQLite would make a new database of it and delete the log of
// the old one. It reads the secret first, because the secret is marked after the first commit.
func refuseLost(path string) error {
	used, err := secretfile.New(path + secretSuffix).IsUsed()
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
