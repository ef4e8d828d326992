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

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return new(sqlite.Driver) }

// Connect implements driver.Connector. It reads the file's identity before it opens the file, so
// that the next use detects a replacement in between.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	file, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	opened, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{opened.(session), c.path, file, map[string]*statement{}}, nil
}

// open retries while other connections to a new file keep it busy, because SQLite does not wait for
// a lock to change the journal mode.
func (c connector) open(ctx context.Context) (driver.Conn, error) {
	for deadline := time.Now().Add(BusyTimeout); ; {
		opened, err := c.Driver().Open(c.dsn)
		if code(err)&0xff != codes.SQLITE_BUSY || time.Now().After(deadline) {
			return opened, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(busyPause):
		}
	}
}

const busyPause = 5 * time.Millisecond

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
	idle map[string]*statement
}

// ResetSession implements driver.SessionResetter, which database/sql calls before every use but the
// first. It discards the connection if the file at its path was deleted or replaced.
func (c *connection) ResetSession(ctx context.Context) error {
	if found, err := os.Stat(c.path); err != nil || !os.SameFile(found, c.file) {
		return driver.ErrBadConn
	}
	return c.session.ResetSession(ctx)
}

// Close implements driver.Conn. SQLite does not close a file with open statements.
func (c *connection) Close() (err error) {
	for _, kept := range c.idle {
		err = errors.Join(err, kept.preparedStatement.Close())
	}
	return errors.Join(err, c.session.Close())
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *connection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if kept := c.idle[query]; kept != nil {
		delete(c.idle, query)
		return kept, nil
	}
	prepared, err := c.session.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &statement{prepared.(preparedStatement), c, query}, nil
}

type preparedStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// statement goes back to its connection when it is closed.
type statement struct {
	preparedStatement
	of    *connection
	query string
}

const mostIdle = 128

// Close implements driver.Stmt.
func (s *statement) Close() error {
	if s.of.idle[s.query] != nil || len(s.of.idle) >= mostIdle {
		return s.preparedStatement.Close()
	}
	s.of.idle[s.query] = s
	return nil
}
