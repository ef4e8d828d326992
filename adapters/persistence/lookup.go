package persistence

import (
	"cmp"
	"context"
	"database/sql"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/mapper"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// stored is a row with the version that a change has to find.
type stored[R any] struct {
	row     R
	version int64
}

// storedGrant is a grant as the database has it.
type storedGrant struct {
	stored[grantRow]
	restored atomic.Pointer[oauth.AccessGrant] // by the first call of restore; callers get copies
}

var _ sqlite.CacheEntry = (*storedGrant)(nil)

// GrantID implements sqlite.CacheEntry.
func (g *storedGrant) GrantID() string { return g.row.ID }

func (g *storedGrant) restore() *oauth.AccessGrant {
	if g.restored.Load() == nil {
		g.restored.CompareAndSwap(nil, g.row.restore())
	}
	return g.restored.Load().Copy()
}

var (
	codeColumns  = codeTable.ColumnList() + ", version"
	grantColumns = grantTable.ColumnList() + ", version"
)

// grant finds a grant.
func (e engine) grant(db *gorm.DB, id string) (*storedGrant, error) {
	found := new(storedGrant)
	targets := append(grantTable.ScanTargets(&found.row), &found.version)
	err := e.readRow(db, "SELECT "+grantColumns+" FROM grants WHERE id = ?", id, targets...)
	return found, failed("finding a grant", err)
}

// code finds a code.
func (e engine) code(db *gorm.DB, id string) (found stored[codeRow], err error) {
	targets := append(codeTable.ScanTargets(&found.row), &found.version)
	err = e.readRow(db, "SELECT "+codeColumns+" FROM authorization_codes WHERE id = ?", id, targets...)
	return found, failed("finding a code", err)
}

// query runs a query by a key. In a file it ignores the end of ctx: database/sql would start two
// goroutines to watch it, and the query takes microseconds.
func (e engine) query(db *gorm.DB, query string, key any) (*sql.Rows, error) {
	ctx := db.Statement.Context
	if !e.server {
		ctx = context.WithoutCancel(ctx)
	}
	statement := mapper.NewStatement(db)
	statement.Write(query, key)
	return statement.Query(ctx, db)
}

func (e engine) readRow(db *gorm.DB, query string, key any, into ...any) error {
	rows, err := e.query(db, query, key)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return cmp.Or(rows.Err(), gorm.ErrRecordNotFound)
	}
	return rows.Scan(into...)
}

func readRows[R any](e engine, db *gorm.DB, table *mapper.Table[R], query string,
	key any) (all []stored[R], err error) {
	rows, err := e.query(db, query, key)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var found stored[R]
		if err := rows.Scan(append(table.ScanTargets(&found.row), &found.version)...); err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, rows.Err()
}
