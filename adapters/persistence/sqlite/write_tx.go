package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"gorm.io/gorm"
)

// writeTx is a transaction that records what one of its writes has done. It does not use a transaction of database/sql, which starts a goroutine
// and a context for each: a lone write would be slower. Rows have to be closed before the transaction ends.
type writeTx struct {
	conn  *sql.Conn // not embedded: GORM would begin a transaction in the transaction
	tx    driver.Tx
	wrote bool  // the write may have changed a row
	ended error // the error that may have ended the transaction
}

var (
	_ gorm.ConnPool    = (*writeTx)(nil)
	_ gorm.TxCommitter = (*writeTx)(nil)
)

// begin waits for the write lock.
func (b *writeBatcher) begin() (*writeTx, error) {
	pool, err := b.writer.DB()
	if err != nil {
		return nil, err
	}
	ctx := context.Background() // each write has its own
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &writeTx{conn: conn}
	if err := conn.Raw(func(c any) (err error) {
		t.tx, err = c.(*connection).BeginTx(ctx, driver.TxOptions{})
		return err
	}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return t, nil
}

// Commit implements gorm.TxCommitter.
func (t *writeTx) Commit() error { return t.end(t.tx.Commit) }

// Rollback implements gorm.TxCommitter.
func (t *writeTx) Rollback() error { return t.end(t.tx.Rollback) }

func (t *writeTx) end(how func() error) error {
	return errors.Join(t.conn.Raw(func(any) error { return how() }), t.conn.Close())
}

// ExecContext implements gorm.ConnPool.
func (t *writeTx) ExecContext(ctx context.Context, statement string, values ...any) (sql.Result, error) {
	done, err := t.conn.ExecContext(ctx, statement, values...)
	return done, t.record(err)
}

// QueryContext implements gorm.ConnPool. A query that is no SELECT may write, such as an INSERT that returns its key.
func (t *writeTx) QueryContext(ctx context.Context, query string, values ...any) (*sql.Rows, error) {
	rows, err := t.conn.QueryContext(ctx, query, values...)
	if err == nil && strings.HasPrefix(query, "SELECT") {
		return rows, nil
	}
	return rows, t.record(err)
}

// QueryRowContext implements gorm.ConnPool.
func (t *writeTx) QueryRowContext(ctx context.Context, query string, values ...any) *sql.Row {
	return t.conn.QueryRowContext(ctx, query, values...)
}

// PrepareContext implements gorm.ConnPool.
func (t *writeTx) PrepareContext(ctx context.Context, statement string) (*sql.Stmt, error) {
	return t.conn.PrepareContext(ctx, statement)
}

// record treats every error as one that may have ended the transaction, except a duplicate key, which undoes its statement only.
func (t *writeTx) record(err error) error {
	if !IsDuplicate(err) {
		t.wrote, t.ended = true, cmp.Or(t.ended, err)
	}
	return err
}
