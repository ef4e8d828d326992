package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

// cluster connects to one of several servers of the same database: to the one that it chose before, while that one is ready.
type cluster struct {
	servers []driver.Connector
	chosen  atomic.Int64
}

// Driver implements driver.Connector.
func (c *cluster) Driver() driver.Driver { return c.servers[0].Driver() }

// Connect implements driver.Connector.
func (c *cluster) Connect(ctx context.Context) (driver.Conn, error) {
	var failures error
	first, count := c.chosen.Load(), int64(len(c.servers))
	for i := range count {
		at := (first + i) % count
		opened, err := c.servers[at].Connect(ctx)
		if err == nil {
			opened, err = prepare(ctx, opened)
		}
		if err == nil {
			c.chosen.Store(at)
			return opened, nil
		}
		failures = errors.Join(failures, err)
	}
	return nil, failures
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

// prepare sets the isolation level of a connection; to set it for each transaction costs a round trip. It lets the reads from a
// Galera node wait for what other nodes have committed, and refuses a node that is not ready.
func prepare(ctx context.Context, opened driver.Conn) (driver.Conn, error) {
	conn := opened.(connection)
	var clustered string
	_, err := conn.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil)
	if err == nil {
		clustered, err = second(ctx, conn, "SHOW VARIABLES LIKE 'wsrep_on'")
	}
	if err == nil && clustered != "ON" {
		return conn, nil
	}
	var state string
	if err == nil {
		state, err = second(ctx, conn, "SHOW STATUS LIKE 'wsrep_local_state_comment'")
	}
	if err == nil && state != "Synced" {
		err = fmt.Errorf("the node of the cluster is not synced, but %q", state)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "SET SESSION wsrep_sync_wait = 1", nil)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &node{conn}, nil
}

// second returns the second column of the only row, or "" without a row.
func second(ctx context.Context, conn connection, query string) (string, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	row := make([]driver.Value, 2)
	if err := rows.Next(row); errors.Is(err, io.EOF) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s", row[1]), nil
}

// node is a connection to a node of a cluster. It ends when the node has left the cluster, so that the pool connects to another.
type node struct{ connection }

const (
	notInCluster    = 1047 // the node refuses every statement
	waitTimeExpired = 1205 // of a read, which waits for no lock: the node hears nothing of the others
)

// QueryContext implements driver.QueryerContext.
func (n *node) QueryContext(ctx context.Context, query string, values []driver.NamedValue) (driver.Rows, error) {
	rows, err := n.connection.QueryContext(ctx, query, values)
	if isNumber(err, notInCluster) || isNumber(err, waitTimeExpired) {
		return nil, driver.ErrBadConn
	}
	return rows, err
}

// ExecContext implements driver.ExecerContext.
func (n *node) ExecContext(ctx context.Context, statement string, values []driver.NamedValue) (driver.Result, error) {
	done, err := n.connection.ExecContext(ctx, statement, values)
	if isNumber(err, notInCluster) {
		return nil, driver.ErrBadConn
	}
	return done, err
}

func isNumber(err error, number uint16) bool {
	var failure *mysql.MySQLError
	return errors.As(err, &failure) && failure.Number == number
}
