package persistence

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"gorm.io/gorm"
)

// writing is a transaction that knows what one member has done in it. It is not one of database/sql, which makes a goroutine and a context for
// each: a lone write would notice. Rows have to be closed before its end, which waits for them.
type writing struct {
	on    *sql.Conn // not embedded: GORM would begin a transaction in the transaction
	tx    driver.Tx
	wrote bool  // perhaps; whoever has not leaves nothing behind
	ended error // that may have ended the transaction
}

var (
	_ gorm.ConnPool    = (*writing)(nil)
	_ gorm.TxCommitter = (*writing)(nil)
)

// begin waits for the lock to write.
func (g *group) begin() (*writing, error) {
	pool, err := g.writer.DB()
	if err != nil {
		return nil, err
	}
	ctx := context.Background() // whoever joins has one
	on, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writing{on: on}
	if err := on.Raw(func(on any) (err error) {
		w.tx, err = on.(*connection).BeginTx(ctx, driver.TxOptions{})
		return err
	}); err != nil {
		return nil, errors.Join(err, on.Close())
	}
	return w, nil
}

// Commit implements gorm.TxCommitter.
func (w *writing) Commit() error { return w.end(w.tx.Commit) }

// Rollback implements gorm.TxCommitter.
func (w *writing) Rollback() error { return w.end(w.tx.Rollback) }

func (w *writing) end(how func() error) error {
	return errors.Join(w.on.Raw(func(any) error { return how() }), w.on.Close())
}

// ExecContext implements gorm.ConnPool.
func (w *writing) ExecContext(ctx context.Context, statement string, values ...any) (sql.Result, error) {
	done, err := w.on.ExecContext(ctx, statement, values...)
	return done, w.note(err)
}

// QueryContext implements gorm.ConnPool. A row that the database numbers is written by a question too.
func (w *writing) QueryContext(ctx context.Context, question string, values ...any) (*sql.Rows, error) {
	rows, err := w.on.QueryContext(ctx, question, values...)
	if err == nil && strings.HasPrefix(question, "SELECT") {
		return rows, nil
	}
	return rows, w.note(err)
}

// QueryRowContext implements gorm.ConnPool.
func (w *writing) QueryRowContext(ctx context.Context, question string, values ...any) *sql.Row {
	return w.on.QueryRowContext(ctx, question, values...)
}

// PrepareContext implements gorm.ConnPool.
func (w *writing) PrepareContext(ctx context.Context, statement string) (*sql.Stmt, error) {
	return w.on.PrepareContext(ctx, statement)
}

// note knows one error that takes back a statement and nothing else.
func (w *writing) note(err error) error {
	if !isDuplicate(err) {
		w.wrote, w.ended = true, cmp.Or(w.ended, err)
	}
	return err
}
