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
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/pasteport/pasteport/domain/oauth"
)

// BusyTimeout is how long a change waits for its turn. The busy_timeout of SQLite limits one wait
// for the write lock, and a change may queue behind others that wait for it.
const BusyTimeout = 5 * time.Second

// WAL lets Open keep a write-ahead log beside the file. Later connections do so without it.
const WAL = "journal_mode(wal)"

// The settings of connections. synchronous is FULL because a power failure must not bring a revoked
// token back. A connection caches few pages (9 KiB each in our allocator), because the system
// caches them too, once for all connections. temp_store keeps statement journals out of files:
// SQLite would write each page to one before its first change.
var (
	ofReader = []string{"busy_timeout(5000)", "synchronous(2)", "cache_size(50)", "query_only(1)"}
	ofWriter = []string{"busy_timeout(5000)", "synchronous(2)", "cache_size(200)", "temp_store(2)"}
)

const readers = 4 // connections, of which long reads may take some

// Database is an open SQLite file.
type Database struct {
	*groupCommit
	Writer, Reader *gorm.DB
}

// Open opens a file that exists, with WAL or as it is.
func Open(path string, pragmas ...string) (d *Database, err error) {
	d = new(Database)
	if d.Writer, err = connect(path, 1, append(pragmas, ofWriter...)); err != nil {
		return nil, err
	}
	if d.Reader, err = connect(path, readers, append(pragmas, ofReader...)); err != nil {
		return nil, errors.Join(err, disconnect(d.Writer))
	}
	d.groupCommit = &groupCommit{writer: d.Writer, waiting: make(chan *queuedChange, mostInGroup)}
	d.closed, d.groupCommit.close = context.WithCancel(context.Background())
	go d.run()
	return d, nil
}

// Close closes every connection. The last one to the file writes the log back into it.
func (d *Database) Close() error {
	d.close()
	return errors.Join(disconnect(d.Reader), disconnect(d.Writer))
}

// connect uses a driver of our own because GORM's needs a C compiler. It does not let SQLite create
// the file, because with an empty database every token would look invalid. GORM's log is off: it
// prints the values of rows.
func connect(path string, connections int, pragmas []string) (*gorm.DB, error) {
	// A transaction takes the write lock at once, because SQLite may refuse it after a read.
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_pragma": pragmas}
	pool := sql.OpenDB(connector{path, "file:" + url.PathEscape(path) + "?" + query.Encode()})
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}),
		&gorm.Config{SkipDefaultTransaction: true, DisableNestedTransaction: true, Logger: logger.Discard})
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
	if failure, found := errors.AsType[*driver.Error](err); found {
		return failure.Code()
	}
	return 0
}

// IsDuplicate reports that a row with this key exists.
func IsDuplicate(err error) bool {
	code := code(err)
	return code == codes.SQLITE_CONSTRAINT_PRIMARYKEY || code == codes.SQLITE_CONSTRAINT_UNIQUE
}

// Explain adds the remedy to SQLite's short messages.
func Explain(err error) error {
	switch code(err) & 0xff { // the primary result code
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
