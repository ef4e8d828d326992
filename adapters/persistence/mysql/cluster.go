package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"
	"sync/atomic"
)

// cluster connects to one of several servers of the same database: to the chosen one, or the next
// that is ready.
type cluster struct {
	servers []driver.Connector
	chosen  atomic.Int64
}

func (c *cluster) Driver() driver.Driver { return c.servers[0].Driver() }

// Connect implements driver.Connector. A server that fails is not the chosen one any more, even if
// ctx ends before another is found.
func (c *cluster) Connect(ctx context.Context) (driver.Conn, error) {
	var failures error
	first, count := c.chosen.Load(), int64(len(c.servers))
	for i := range count {
		at := (first + i) % count
		opened, err := c.connect(ctx, at)
		if err == nil {
			return opened, nil
		}
		failures = errors.Join(failures, err)
		c.chosen.CompareAndSwap(at, (at+1)%count)
	}
	return nil, failures
}

// connect limits the time, because a server may accept a connection and say nothing.
func (c *cluster) connect(ctx context.Context, at int64) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	opened, err := c.servers[at].Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := opened.(connection)
	if err := prepare(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &node{conn, func() bool { return c.chosen.Load() == at }}, nil
}

// connection is what a connection of the driver offers to database/sql.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// session are the settings of every connection, whatever the server and the address set. A
// connection without autocommit, or with another completion_type, could stay in a transaction and
// not see what other replicas have revoked. With wsrep_sync_wait, reads from a Galera node wait for
// what other nodes have committed; only MariaDB has that setting and executes the comment. Without
// a strict sql_mode, MySQL would truncate values that are too long. To set the isolation level for
// each transaction would cost a round trip.
var session = []string{
	"SET autocommit = 1, completion_type = 'NO_CHAIN', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', " +
		"innodb_lock_wait_timeout = " + strconv.Itoa(int(lockLimit.Seconds())) + " /*M! , wsrep_sync_wait = 1 */",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
}

// prepare gives a connection its settings. It refuses a server that is read-only, as the replica of
// a primary is. A Galera node that is not ready refuses the query.
func prepare(ctx context.Context, conn connection) error {
	for _, statement := range session {
		if _, err := conn.ExecContext(ctx, statement, nil); err != nil {
			return err
		}
	}
	rows, err := conn.QueryContext(ctx, "SELECT CONCAT(@@GLOBAL.read_only) IN ('0', 'OFF')", nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return err
	}
	if row[0] != int64(1) {
		return errors.New("the server is read-only")
	}
	return nil
}

// node is a connection to one of the servers. The pool replaces it when another server is chosen,
// or when its server has left a Galera cluster.
type node struct {
	connection
	chosen func() bool
}

func (n *node) ResetSession(ctx context.Context) error {
	if !n.chosen() {
		return driver.ErrBadConn
	}
	return n.connection.ResetSession(ctx)
}

const (
	notInCluster    = "1047" // the node refuses every statement
	waitTimeExpired = "1205" // a read waits for no lock, so the node has waited for the other nodes
)

func (n *node) QueryContext(ctx context.Context, query string, values []driver.NamedValue) (driver.Rows, error) {
	rows, err := n.connection.QueryContext(ctx, query, values)
	if number := code(err); number == notInCluster || number == waitTimeExpired {
		return nil, driver.ErrBadConn
	}
	return rows, err
}

func (n *node) ExecContext(ctx context.Context, statement string, values []driver.NamedValue) (driver.Result, error) {
	done, err := n.connection.ExecContext(ctx, statement, values)
	if code(err) == notInCluster {
		return nil, driver.ErrBadConn
	}
	return done, err
}
