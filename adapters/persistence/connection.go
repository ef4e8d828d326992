package persistence

import (
	"context"
	"database/sql/driver"
	"os"

	"modernc.org/sqlite"
)

// connector opens connections that notice when their file is gone or is another one. SQLite would go on in a file without a
// name, and whatever was answered from there would be lost at the next start.
type connector struct{ path, dsn string }

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return new(sqlite.Driver) }

// Connect implements driver.Connector. It looks at the file first: one that takes its place meanwhile is noticed at the next use.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	file, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	opened, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return connection{opened.(session), c.path, file}, nil
}

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

type connection struct {
	session
	path string
	file os.FileInfo
}

// ResetSession implements driver.SessionResetter, which comes before every use but the first: a connection to a file that is no
// longer there is given up for a new one.
func (c connection) ResetSession(ctx context.Context) error {
	if there, err := os.Stat(c.path); err != nil || !os.SameFile(there, c.file) {
		return driver.ErrBadConn
	}
	return c.session.ResetSession(ctx)
}
