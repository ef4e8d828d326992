// Package sqlite opens the SQLite file of a store. A Database has one connection that writes and a
// few that read. Database.Write carries out a change; changes that wait at the same moment share
// one transaction and one flush of the disk (groupCommit). Each connection notices when the file at
// its path was deleted or replaced.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/pasteport/pasteport/domain/oauth"
)

// pragmas are the settings of every connection, checked at start. synchronous is FULL because a
// power failure must not bring a revoked token back.
var pragmas = []struct{ name, value string }{
	{"busy_timeout", "5000"}, // milliseconds
	{"foreign_keys", "1"},
	{journalMode, "wal"},
	{"synchronous", "2"},
}

// BusyTimeout is how long a change waits for the write lock: the busy_timeout of SQLite counts for
// each connection anew, and changes queue for one.
const BusyTimeout = 5 * time.Second

const journalMode = "journal_mode" // which is stored in the file

// readers is the number of connections that read: two more than processors, for long reads, and at
// most four.
func readers(processors int) int { return min(4, processors+2) }

// A connection caches few pages (9 KiB each in our allocator), because the system caches them too,
// once for all connections. SQLite gives the pages that one connection leaves unused to the others.
const (
	readCache  = "cache_size(50)"
	writeCache = "cache_size(200)"
)

// undoInMemory keeps statement journals out of files: SQLite would write each page to one before
// its first change.
const undoInMemory = "temp_store(2)"

// Database is an open SQLite file.
type Database struct {
	Writer, Reader *gorm.DB
	changes        *groupCommit
}

// Open opens a file that exists, in WAL mode.
func Open(path string) (*Database, error) { return open(path, walDSN) }

// OpenAsIs opens a file that exists without changing its journal mode, which is stored in the file.
func OpenAsIs(path string) (*Database, error) { return open(path, dsn) }

func open(path string, dsn func(path string, more ...string) string) (d *Database, err error) {
	d = new(Database)
	if d.Writer, err = connect(connector{path, dsn(path, writeCache, undoInMemory)}, 1); err != nil {
		return nil, err
	}
	if d.Reader, err = connect(connector{path, dsn(path, "query_only(1)", readCache)},
		readers(runtime.GOMAXPROCS(0))); err != nil {
		return nil, errors.Join(err, disconnect(d.Writer))
	}
	d.changes = newGroupCommit(d.Writer)
	return d, nil
}

// Write carries out a change in a transaction that it may share with other changes. An error of the
// change undoes that change alone. It waits for its turn no longer than lockTimeout.
func (d *Database) Write(ctx context.Context, lockTimeout time.Duration, change func(tx *gorm.DB) error) error {
	return d.changes.do(ctx, lockTimeout, change)
}

// Close writes the log back into the file and closes every connection.
func (d *Database) Close() error {
	return errors.Join(unavailable("writing the log back", d.Writer.Exec("PRAGMA wal_checkpoint(TRUNCATE)").Error),
		d.Disconnect())
}

// Disconnect closes every connection and leaves the log as it is.
func (d *Database) Disconnect() error {
	d.changes.close()
	return errors.Join(
		unavailable("closing the readers", disconnect(d.Reader)),
		unavailable("closing the writer", disconnect(d.Writer)),
	)
}

// CheckPragmas refuses a file for which SQLite does not keep the settings that the store relies on.
func (d *Database) CheckPragmas() error {
	return errors.Join(checkPragmas(d.Writer), checkPragmas(d.Reader))
}

func checkPragmas(db *gorm.DB) error {
	for _, pragma := range pragmas {
		var value string
		if err := db.Raw("PRAGMA " + pragma.name).Scan(&value).Error; err != nil {
			return fmt.Errorf("checking %s: %w", pragma.name, err)
		}
		if value != pragma.value {
			return fmt.Errorf("SQLite keeps %s at %s instead of %s: put the file on a local disk", pragma.name, value,
				pragma.value)
		}
	}
	return nil
}

func walDSN(path string, more ...string) string {
	return dsn(path, append([]string{journalMode + "(wal)"}, more...)...)
}

// dsn does not let SQLite create the file, because with an empty database every token would look
// invalid.
func dsn(path string, more ...string) string {
	// SQLite may refuse the write lock to a transaction that has read before.
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}}
	for _, pragma := range pragmas {
		if pragma.name != journalMode {
			query.Add("_pragma", pragma.name+"("+pragma.value+")")
		}
	}
	query["_pragma"] = append(query["_pragma"], more...)
	return "file:" + url.PathEscape(path) + "?" + query.Encode()
}

// connect uses a driver of our own because GORM's needs a C compiler. GORM's log is off: it prints
// the values of rows.
func connect(to connector, connections int) (*gorm.DB, error) {
	pool := sql.OpenDB(to)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}),
		&gorm.Config{SkipDefaultTransaction: true, Logger: logger.Discard})
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

// Explain adds the remedy to SQLite's short messages.
func Explain(err error) error {
	switch code(err) & 0xff {
	case codes.SQLITE_NOTADB, codes.SQLITE_CORRUPT:
		return fmt.Errorf("it is not a SQLite database or it is damaged, restore it or name another file: %w", err)
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
