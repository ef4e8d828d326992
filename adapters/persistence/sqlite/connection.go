package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"strings"
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
	countConnection()
	opened, err := c.open(ctx)
	if err != nil {
		discountConnection()
		return nil, err
	}
	return &connection{
		session:  opened.(session),
		path:     c.path,
		file:     file,
		prepared: map[string]*statement{},
	}, nil
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

// session is a connection of SQLite's driver.
type session interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// connection prepares each statement once. GORM would prepare it for the pool, and again for each
// transaction. Without prepared statements a code flow lost 28 % of its rate (2026-11-26).
type connection struct {
	session
	path     string
	file     os.FileInfo
	prepared map[string]*statement
}

// statement is a prepared statement. It cannot run again while its rows are being read.
type statement struct {
	prepared
	reading bool
}

// prepared is a prepared statement of SQLite's driver.
type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// maxPrepared is more than the number of fixed statements. Statements with lists of different
// lengths add to them.
const maxPrepared = 64

// ResetSession implements driver.SessionResetter, which database/sql calls before every use but the
// first. It discards the connection if the file at its path was deleted or replaced.
func (c *connection) ResetSession(ctx context.Context) error {
	if found, err := os.Stat(c.path); err != nil || !os.SameFile(found, c.file) {
		return driver.ErrBadConn
	}
	return c.session.ResetSession(ctx)
}

// ExecContext implements driver.ExecerContext.
func (c *connection) ExecContext(ctx context.Context, query string, values []driver.NamedValue) (driver.Result, error) {
	known, err := c.statement(ctx, query)
	switch {
	case err != nil:
		return nil, err
	case known == nil:
		return c.session.ExecContext(ctx, query, values)
	}
	return known.ExecContext(ctx, values)
}

// QueryContext implements driver.QueryerContext.
func (c *connection) QueryContext(ctx context.Context, query string, values []driver.NamedValue) (driver.Rows, error) {
	known, err := c.statement(ctx, query)
	switch {
	case err != nil:
		return nil, err
	case known == nil:
		return c.session.QueryContext(ctx, query, values)
	}
	rows, err := known.QueryContext(ctx, values)
	if err != nil {
		return nil, err
	}
	known.reading = true
	return statementRows{rows.(driverRows), known}, nil
}

// statement returns a prepared statement whose rows are not being read. It returns nil for pragmas,
// some of which take effect when they are prepared.
func (c *connection) statement(ctx context.Context, query string) (*statement, error) {
	known, found := c.prepared[query]
	if found && !known.reading {
		return known, nil
	}
	if found || strings.HasPrefix(query, "PRAGMA") {
		return nil, nil
	}
	if len(c.prepared) >= maxPrepared {
		if err := c.finalize(); err != nil {
			return nil, err
		}
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	known = &statement{prepared: made.(prepared)}
	c.prepared[query] = known
	return known, nil
}

// finalize closes the statements whose rows are not being read.
func (c *connection) finalize() (err error) {
	for query, known := range c.prepared {
		if !known.reading {
			err = errors.Join(err, known.Close())
			delete(c.prepared, query)
		}
	}
	return err
}

// Close implements driver.Conn.
func (c *connection) Close() error {
	defer discountConnection()
	return errors.Join(c.finalize(), c.session.Close())
}

// driverRows are rows of SQLite's driver.
type driverRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

// statementRows makes its statement available again when it is closed.
type statementRows struct {
	driverRows
	of *statement
}

// Close implements driver.Rows.
func (r statementRows) Close() error {
	r.of.reading = false
	return r.driverRows.Close()
}
