package persistence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
)

// secretSuffix is appended to the name of the database for its server secret.
const secretSuffix = ".secret"

// OpenSQLite opens the database in file and brings its schema up to date. It creates a missing
// file, and a missing directory, for their owner only; beside the file lies the server secret.
// Several processes may share one file.
func OpenSQLite(file string) (*Store, error) {
	return openFile(file, create, sqlite.Open, (*Store).prepare)
}

// OpenExisting opens a database beside the service that runs on it. It creates and migrates
// nothing, and fails when that would be necessary, because an older service could not go on with
// the result.
func OpenExisting(file string) (*Store, error) {
	return openFile(file, exists, sqlite.OpenAsIs, (*Store).compare)
}

// OpenUnchecked opens the database in an existing file without examining it, for Checks.
func OpenUnchecked(file string) (*Store, error) {
	return openFile(file, exists, sqlite.OpenAsIs, unchecked)
}

// MigrateSQLite brings the schema of the database in file up to date, creates the file when it is
// missing, and returns the migrations that it applied.
func MigrateSQLite(file string) (applied []string, err error) {
	store, err := openFile(file, create, sqlite.Open, func(s *Store) (err error) {
		applied, err = s.migrateFile(func(*gorm.DB) error { return nil })
		return err
	})
	if err != nil {
		return nil, err
	}
	return applied, store.Close()
}

func openFile(file string, locate func(path string) error, open func(path string) (*sqlite.Database, error),
	ready func(*Store) error) (*Store, error) {
	path, err := filepath.Abs(file) // so that no name has a special meaning to SQLite
	if err == nil {
		err = locate(path)
	}
	if err != nil {
		return nil, refusal(file, err)
	}
	database, err := open(path)
	if err != nil {
		return nil, refusal(file, err)
	}
	store := newFileStore(path, database)
	if err := ready(store); err != nil {
		return nil, errors.Join(refusal(file, err), database.Disconnect())
	}
	return store, nil
}

func newFileStore(path string, database *sqlite.Database) *Store {
	return &Store{
		engine:      sqliteEngine,
		file:        database,
		writer:      database.Writer,
		reader:      database.Reader,
		secretFile:  secretfile.New(path + secretSuffix),
		lockTimeout: sqlite.BusyTimeout,
	}
}

func refusal(file string, err error) error {
	return fmt.Errorf("opening the OAuth database %s: %w", file, sqlite.Explain(err))
}

// prepare migrates the schema and creates the secret under the write lock, so that processes that
// start together do it once.
func (s *Store) prepare() error {
	_, err := s.migrateFile(s.createSecret)
	return err
}

func (s *Store) migrateFile(also func(tx *gorm.DB) error) (applied []string, err error) {
	err = s.file.SortInFiles(func() error {
		return s.transaction(context.Background(), func(tx *gorm.DB) (err error) {
			if applied, err = migrate(tx, s.engine, migrations); err != nil {
				return err
			}
			return also(tx)
		})
	})
	return applied, err
}

// compare refuses a schema that is not the one of this program, and settings under which answered
// commits can be lost.
func (s *Store) compare() error {
	if err := s.compareSchema(); err != nil {
		return err
	}
	return s.durable()
}

func unchecked(*Store) error { return nil }

func (s *Store) durable() error {
	if s.engine.server {
		return s.engine.durable(s.writer)
	}
	return s.file.CheckPragmas()
}

// exists refuses a file that is missing or empty.
func exists(path string) error {
	found, err := os.Stat(path)
	if err == nil && found.Size() == 0 {
		return errors.New("it is empty: \"pasteport serve\" makes a database of it")
	}
	return err
}

// create creates a missing file. It does not even open a file that exists: closing it would release
// the locks that this process may hold on it.
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
