package persistence

import (
	"context"
	"database/sql/driver"
	"os"
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
	opened, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	return connection{opened.(session), c.path, file}, nil
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
