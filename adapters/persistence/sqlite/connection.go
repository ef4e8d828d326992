package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"time"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// connector opens connections that detect a deleted or replaced database file. SQLite would keep
// using the deleted file, and its commits would be lost at the next start.
type connector struct{ path, dsn string }

func (c connector) Driver() driver.Driver { return new(sqlite.Driver) }

// Connect implements driver.Connector. It reads the file's identity before it opens the file, so
// that the next use detects a replacement in between. It tries again while other connections to a
// new file keep it busy, because SQLite does not wait for a lock to change the journal mode.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	file, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	opened, err := c.Driver().Open(c.dsn)
	for deadline := time.Now().Add(BusyTimeout); code(err)&0xff == codes.SQLITE_BUSY && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
		opened, err = c.Driver().Open(c.dsn)
	}
	if err != nil {
		return nil, err
	}
	return &connection{opened.(session), c.path, file, map[string]keptStatement{}}, nil
}

// session is what database/sql uses of a connection of SQLite's driver. Without ExecContext and
// QueryContext it prepares every statement.
type session interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// connection is a connection to the file that was at the path when it was opened. It keeps its
// statements prepared: database/sql would parse them again in each transaction, which is a tenth of
// a refresh (2026-11-29).
type connection struct {
	session
	path string
	file os.FileInfo
	kept map[string]keptStatement
}

// ResetSession implements driver.SessionResetter, which database/sql calls before every use but the
// first. It discards the connection if the file at its path was deleted or replaced.
func (c *connection) ResetSession(ctx context.Context) error {
	if found, err := os.Stat(c.path); err != nil || !os.SameFile(found, c.file) {
		return driver.ErrBadConn
	}
	return c.session.ResetSession(ctx)
}

func (c *connection) Close() (err error) {
	for _, kept := range c.kept {
		err = errors.Join(err, kept.statement.Close())
	}
	return errors.Join(err, c.session.Close())
}

const mostKept = 128 // statements

// PrepareContext implements driver.ConnPrepareContext. A caller must read all rows of a statement
// before it runs the statement again.
func (c *connection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if kept, found := c.kept[query]; found {
		return kept, nil
	}
	prepared, err := c.session.PrepareContext(ctx, query)
	if err != nil || len(c.kept) >= mostKept {
		return prepared, err
	}
	c.kept[query] = keptStatement{prepared.(statement)}
	return c.kept[query], nil
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// keptStatement stays open until its connection is closed.
type keptStatement struct{ statement }

func (keptStatement) Close() error { return nil }
