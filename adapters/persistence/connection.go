package persistence

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

// connector opens connections that notice when their file is gone or is another one. SQLite would go on in a file without a
// name, and whatever was answered from there would be lost at the next start.
type connector struct{ path, dsn string }

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return new(sqlite.Driver) }

// Connect implements driver.Connector. It looks at the file first: one that takes its place meanwhile is noticed at the next use.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	file, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	connecting()
	opened, err := c.open(ctx)
	if err != nil {
		disconnected()
		return nil, err
	}
	return &connection{session: opened.(session), path: c.path, file: file, prepared: map[string]*statement{}}, nil
}

// open tries again while others that open the same new file keep it busy: SQLite does not wait when it is to change the journal.
func (c connector) open(ctx context.Context) (driver.Conn, error) {
	for deadline := time.Now().Add(patience); ; {
		opened, err := c.Driver().Open(c.dsn)
		if sqliteCode(err)&0xff != codes.SQLITE_BUSY || time.Now().After(deadline) {
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

// session is what SQLite's driver offers to database/sql.
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

// connection prepares what it is asked once. GORM would do that for a pool, and again for each transaction on it.
type connection struct {
	session
	path     string
	file     os.FileInfo
	prepared map[string]*statement
}

// statement cannot be asked again while somebody reads its rows.
type statement struct {
	prepared
	reading bool
}

// prepared is what SQLite's driver offers of a statement.
type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// mostPrepared is more than the statements that are written here; those of the sweeps have a list of any length in them.
const mostPrepared = 64

// ResetSession implements driver.SessionResetter, which comes before every use but the first: a connection to a file that is no
// longer there is given up for a new one.
func (c *connection) ResetSession(ctx context.Context) error {
	if there, err := os.Stat(c.path); err != nil || !os.SameFile(there, c.file) {
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
	return reading{rows.(answer), known}, nil
}

// BeginTx implements driver.ConnBeginTx by prepared statements; the driver would have each of them parsed for every transaction.
func (c *connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if options != (driver.TxOptions{}) {
		return nil, errors.New("a transaction on SQLite has no options")
	}
	tx := begun{c}
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE", nil); err != nil {
		_ = tx.Rollback() // it may have begun for somebody who has gone
		return nil, err
	}
	return tx, nil
}

// begun is a transaction that got the write lock at its beginning: one that first reads could not be granted it any more.
type begun struct{ on *connection }

// Commit implements driver.Tx, also for somebody who goes meanwhile: what the disk has is not to be called undone. One that fails would
// leave its transaction to whoever comes next on the connection.
func (b begun) Commit() error {
	_, err := b.on.ExecContext(context.Background(), "COMMIT", nil)
	if err != nil {
		_ = b.Rollback() // SQLite may have done that by itself
	}
	return err
}

// Rollback implements driver.Tx.
func (b begun) Rollback() error {
	_, err := b.on.ExecContext(context.Background(), "ROLLBACK", nil)
	return err
}

// statement returns a prepared one that nobody reads from, or nil for what is not to be prepared: some pragmas take effect when they are.
func (c *connection) statement(ctx context.Context, query string) (*statement, error) {
	known, found := c.prepared[query]
	if found && !known.reading {
		return known, nil
	}
	if found || strings.HasPrefix(query, "PRAGMA") {
		return nil, nil
	}
	if len(c.prepared) >= mostPrepared {
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

// finalize lets go of the statements that nobody reads from.
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
	defer disconnected()
	return errors.Join(c.finalize(), c.session.Close())
}

// answer is what SQLite's driver offers of rows.
type answer interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

// reading are rows that give their statement back.
type reading struct {
	answer
	of *statement
}

// Close implements driver.Rows.
func (r reading) Close() error {
	r.of.reading = false
	return r.answer.Close()
}
