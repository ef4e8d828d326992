package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"strings"

	"gorm.io/gorm"
)

// writeTx is a transaction that records what one of its writes has done.
type writeTx struct {
	*sql.Tx
	wrote bool  // the write may have changed a row
	ended error // the error that may have ended the transaction
}

var (
	_ gorm.ConnPool    = (*writeTx)(nil)
	_ gorm.TxCommitter = (*writeTx)(nil)
)

// ExecContext implements gorm.ConnPool.
func (t *writeTx) ExecContext(ctx context.Context, statement string, values ...any) (sql.Result, error) {
	done, err := t.Tx.ExecContext(ctx, statement, values...)
	return done, t.record(err)
}

// QueryContext implements gorm.ConnPool. A query that is no SELECT may write, such as an INSERT
// that returns its key.
func (t *writeTx) QueryContext(ctx context.Context, query string, values ...any) (*sql.Rows, error) {
	rows, err := t.Tx.QueryContext(ctx, query, values...)
	if err == nil && strings.HasPrefix(query, "SELECT") {
		return rows, nil
	}
	return rows, t.record(err)
}

// record treats every error as one that may have ended the transaction, except a duplicate key,
// which undoes its statement only.
func (t *writeTx) record(err error) error {
	if !IsDuplicate(err) {
		t.wrote, t.ended = true, cmp.Or(t.ended, err)
	}
	return err
}
