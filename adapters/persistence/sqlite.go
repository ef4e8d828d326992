// Package persistence keeps grants in a SQLite file of their own, apart from the site's content: oauth.Store on GORM.
package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
)

// pragmas are what every connection runs with and what is checked at start. synchronous is FULL because a power failure must
// not bring a revoked token back.
var pragmas = []struct{ name, value string }{
	{"busy_timeout", "5000"}, // milliseconds
	{"foreign_keys", "1"},
	{journalMode, "wal"},
	{"synchronous", "2"},
}

// sqliteEngine leaves the lock of migrations to its transactions, which let one writer in at a time.
var sqliteEngine = engine{
	name: "SQLite",
	schema: []string{
		"{id}", "TEXT", "{text}", "TEXT", "{word}", "TEXT", "{digest}", "BLOB", "{bytes}", "BLOB", "{integer}", "INTEGER",
		"{serial}", "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "{rows}", "STRICT", "{keyed}", "STRICT, WITHOUT ROWID",
	},
	find: findGrant, drop: dropSecrets, join: "CROSS JOIN", countAgain: countAgain,
	free: func(tx *gorm.DB) error {
		return executeAll(tx, engine{}, // which cannot take a foreign key away from a table
			`CREATE TABLE secrets_alone (
				digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
				grant_id TEXT NOT NULL,
				kind TEXT NOT NULL, generation INTEGER NOT NULL, scopes TEXT NOT NULL,
				host_wrap BLOB, revoked_at INTEGER, forget_after INTEGER
			) STRICT, WITHOUT ROWID`,
			`INSERT INTO secrets_alone SELECT digest, grant_id, kind, generation, scopes, host_wrap, revoked_at, forget_after FROM secrets`,
			`DROP TABLE secrets`,
			`ALTER TABLE secrets_alone RENAME TO secrets`,
			`CREATE INDEX secrets_by_end ON secrets (forget_after)`,
			`CREATE INDEX secrets_by_revoked_at ON secrets (revoked_at) WHERE revoked_at IS NOT NULL`,
			secretsByWrap,
		)
	},
}

// secretSuffix makes the name of the server secret of that of the database.
const secretSuffix = ".secret"

const journalMode = "journal_mode" // which is written into the file

// readers are as many as so many processors let read at once and two more, for those that read for long; four at most.
func readers(processors int) int { return min(4, processors+2) }

// A connection keeps few pages (9 KiB each in our allocator) because the system keeps them too, once for all connections. What one may keep and does
// not, SQLite gives to the others.
const (
	readCache  = "cache_size(50)"
	writeCache = "cache_size(200)"
	keepCache  = "cache_size(10)"
)

// undoInMemory keeps what a statement may have to put back out of a file, into which SQLite would write each page before its first change.
const undoInMemory = "temp_store(2)"

// patience is as long as SQLite's own: its busy_timeout holds for each writer anew, and they queue up for one connection.
const patience = 5 * time.Second

// OpenSQLite opens the database in file and brings its schema up to date. The file is made readable for its owner only (H7),
// like its directory when that is missing; beside it lies the server secret. Several processes may share one file (I22). A file that is
// missing or empty although its secret was used is refused.
func OpenSQLite(file string) (*Store, error) {
	return open(file, createUnlessLost, dsn, (*Store).prepare)
}

// OpenExisting opens a database beside the service that runs on it: it makes, migrates and draws nothing, and fails when that would
// be necessary, because an older service could not go on with it.
func OpenExisting(file string) (*Store, error) { return open(file, exists, asItIs, (*Store).compare) }

func open(file string, locate func(path string) error, name func(path string, more ...string) string, ready func(*Store) error) (*Store, error) {
	path, err := filepath.Abs(file) // so that no name means anything special to SQLite
	if err == nil {
		err = locate(path)
	}
	if err != nil {
		return nil, refusal(file, err)
	}
	store, err := connectTo(path, name)
	if err != nil {
		return nil, refusal(file, err)
	}
	if err := ready(store); err != nil {
		return nil, errors.Join(refusal(file, err), store.letGo())
	}
	return store, nil
}

func refusal(file string, err error) error {
	return fmt.Errorf("opening the OAuth database %s: %w", file, explain(err))
}

func connectTo(path string, name func(path string, more ...string) string) (store *Store, err error) {
	store = &Store{engine: sqliteEngine, secretFile: secretfile.New(path + secretSuffix), patience: patience}
	giving, err := newYield()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	if store.writer, err = connect(connector{path, name(path, writeCache, undoInMemory)}, 1); err != nil {
		return nil, errors.Join(err, giving.Close())
	}
	if store.reader, err = connect(connector{path, name(path, "query_only(1)", readCache)}, readers(runtime.GOMAXPROCS(0))); err != nil {
		return nil, errors.Join(err, disconnect(store.writer), giving.Close())
	}
	store.recent = newRecent(connector{path, name(path, "query_only(1)", keepCache)})
	store.group = &group{writer: store.writer, recent: store.recent, yield: giving}
	return store, nil
}

// prepare migrates and draws the secret under the write lock, so that processes that start together do it once.
func (s *Store) prepare() error {
	_, err := s.migrateFile(func(applied []string) error {
		if err := s.refuseBegun(applied); err != nil {
			return err
		}
		return s.secretFile.Create()
	})
	if err != nil {
		return err
	}
	return s.markSecretUsed()
}

// refuseBegun refuses a file in which there was no schema, beside a secret that a database was begun with.
func (s *Store) refuseBegun(applied []string) error {
	used, err := s.secretFile.IsUsed()
	if used && len(applied) == len(migrations) {
		return errLost(strings.TrimSuffix(s.secretFile.Path(), secretSuffix))
	}
	return err
}

func (s *Store) migrateFile(also func(applied []string) error) (applied []string, err error) {
	if err := s.checkPragmas(); err != nil {
		return nil, err
	}
	if err := s.writer.Exec("PRAGMA temp_store = 0").Error; err != nil { // what is sorted for an index may be more than memory holds
		return nil, fmt.Errorf("preparing to migrate: %w", err)
	}
	defer func() { err = errors.Join(err, s.writer.Exec("PRAGMA "+undoInMemory).Error) }()
	err = s.transaction(context.Background(), func(tx *gorm.DB) (err error) {
		if applied, err = migrate(tx, s.engine, migrations); err != nil {
			return err
		}
		return also(applied)
	})
	return applied, err
}

// compare refuses a schema that is not the one of this program, and settings that lose what was answered.
func (s *Store) compare() error {
	if err := s.compareSchema(); err != nil {
		return err
	}
	return s.durable()
}

func (s *Store) durable() error {
	if s.engine.server {
		return s.engine.durable(s.writer)
	}
	return s.checkPragmas()
}

func (s *Store) compareSchema() error {
	var applied []string
	err := s.reader.Raw("SELECT id FROM schema_migrations ORDER BY id").Scan(&applied).Error
	if err != nil && !isMissingTable(err) {
		return failed("reading the schema's version", err)
	}
	known := make([]string, 0, len(migrations))
	for _, migration := range migrations {
		known = append(known, migration.id)
	}
	switch {
	case slices.Equal(applied, known):
		return nil
	case len(applied) == 0:
		return errors.New("it is none of Pasteport's: name the data of a service, by data or database")
	case len(applied) > 0 && !slices.Contains(known, applied[len(applied)-1]):
		return errNewer
	}
	return errors.New("an older version of Pasteport has written it: \"pasteport store migrate\" of this version brings it up to date")
}

// dsn lets SQLite make no missing file itself: an empty one would answer that it knows no token.
func dsn(path string, more ...string) string {
	return asItIs(path, append([]string{journalMode + "(wal)"}, more...)...)
}

// asItIs is dsn for a file in which nothing may be changed by looking at it.
func asItIs(path string, more ...string) string {
	query := url.Values{"mode": {"rw"}}
	for _, pragma := range pragmas {
		if pragma.name != journalMode {
			query.Add("_pragma", pragma.name+"("+pragma.value+")")
		}
	}
	query["_pragma"] = append(query["_pragma"], more...)
	return "file:" + url.PathEscape(path) + "?" + query.Encode()
}

// connect goes through a pool of our own driver because GORM's needs a C compiler. GORM's log is off: it prints row values.
func connect(to connector, connections int) (*gorm.DB, error) {
	pool := sql.OpenDB(to)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{
		SkipDefaultTransaction: true, Logger: logger.Discard,
	})
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return db, nil
}

func disconnect(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}

func (s *Store) checkPragmas() error {
	return errors.Join(checkPragmas(s.writer), checkPragmas(s.reader))
}

// checkPragmas refuses to run on promises that SQLite did not make.
func checkPragmas(db *gorm.DB) error {
	for _, pragma := range pragmas {
		var value string
		if err := db.Raw("PRAGMA " + pragma.name).Scan(&value).Error; err != nil {
			return fmt.Errorf("checking %s: %w", pragma.name, err)
		}
		if value != pragma.value {
			return fmt.Errorf("SQLite keeps %s at %s instead of %s: put the file on a local disk", pragma.name, value, pragma.value)
		}
	}
	return nil
}

// explain adds the remedy to what SQLite says in a word.
func explain(err error) error {
	switch sqliteCode(err) & 0xff {
	case codes.SQLITE_NOTADB, codes.SQLITE_CORRUPT:
		return fmt.Errorf("it is no SQLite database or it is damaged, restore it or name another file: %w", err)
	case codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM:
		return fmt.Errorf("this user has to be able to write the file and its directory: %w", err)
	}
	return err
}

// sqliteCode returns SQLite's extended result code, 0 for an error that is not its own.
func sqliteCode(err error) int {
	var failure *driver.Error
	if !errors.As(err, &failure) {
		return 0
	}
	return failure.Code()
}
