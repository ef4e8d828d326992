package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// Tx is a transaction that records what a change writes, so that the GrantCache can follow it. A
// transaction on a database server has no cache; only its DB is set.
type Tx struct {
	*gorm.DB
	cache   *GrantCache
	changed []changedGrant
	unknown bool // anything may have changed
	wrote   bool // a row
}

// changedGrant is a grant that was written. entry is nil when the next lookup has to read it.
type changedGrant struct {
	id    string
	entry CacheEntry
}

// Cached returns the cached grant when it is as new as the transaction.
func (tx *Tx) Cached(id string) (CacheEntry, bool) {
	if tx.cache == nil {
		return nil, false
	}
	return tx.cache.newest(tx, id)
}

// ChangedGrant records that the change writes a grant. entry is what a lookup will return after the
// commit, nil when that is not known.
func (tx *Tx) ChangedGrant(id string, entry CacheEntry) {
	tx.changed = append(tx.changed, changedGrant{id, entry})
}

// ChangedUnknown records that the change may write anything, so that the cache is emptied.
func (tx *Tx) ChangedUnknown() { tx.unknown = true }

// WroteRow records that there is something to commit.
func (tx *Tx) WroteRow() { tx.wrote = true }

func (tx *Tx) hasChanged(grant string) bool {
	return slices.ContainsFunc(tx.changed, func(c changedGrant) bool { return c.id == grant })
}

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

// QueryContext implements gorm.ConnPool. A query that is not a SELECT may write, such as an INSERT
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
