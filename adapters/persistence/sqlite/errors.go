package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/pasteport/pasteport/domain/oauth"
)

// code returns SQLite's extended result code, 0 for any other error.
func code(err error) int {
	var failure *driver.Error
	if !errors.As(err, &failure) {
		return 0
	}
	return failure.Code()
}

// IsDuplicate reports that a row with this key exists.
func IsDuplicate(err error) bool {
	switch code(err) {
	case codes.SQLITE_CONSTRAINT_PRIMARYKEY, codes.SQLITE_CONSTRAINT_UNIQUE:
		return true
	}
	return false
}

// IsMissingTable reports a statement that SQLite cannot prepare; SQLite has no code for a missing table alone.
func IsMissingTable(err error) bool { return code(err)&0xff == codes.SQLITE_ERROR }

// Explain adds the remedy to SQLite's short messages.
func Explain(err error) error {
	switch code(err) & 0xff {
	case codes.SQLITE_NOTADB, codes.SQLITE_CORRUPT:
		return fmt.Errorf("it is no SQLite database or it is damaged, restore it or name another file: %w", err)
	case codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM:
		return fmt.Errorf("this user has to be able to write the file and its directory: %w", err)
	}
	return err
}

func unavailable(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", doing, oauth.ErrUnavailable, err)
}
