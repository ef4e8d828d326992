package persistence

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/mapper"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// secretWithGrant is a secret with the grant that it belongs to.
type secretWithGrant struct {
	secret secretRow
	grant  *grantRow // shared by the secrets of one grant

	restored atomic.Pointer[oauth.AccessGrant] // by the first call of restore; callers get copies
}

var _ sqlite.CacheEntry = (*secretWithGrant)(nil)

// Secret implements sqlite.CacheEntry.
func (f *secretWithGrant) Secret() oauth.Digest { return oauth.Digest(f.secret.Digest) }

// GrantID implements sqlite.CacheEntry.
func (f *secretWithGrant) GrantID() string { return f.grant.ID }

var (
	codeColumns  = codeTable.ColumnList("")
	grantColumns = grantTable.ColumnList("grants.")
)

var findGrant = "SELECT " + grantColumns + ", " + secretTable.ColumnList("secrets.") + " FROM secrets JOIN grants ON id = grant_id WHERE digest = ?"

// lookup finds the grant of a secret.
func (e engine) lookup(db *gorm.DB, secret oauth.Digest) (found *secretWithGrant, err error) {
	found = &secretWithGrant{grant: new(grantRow)}
	err = e.readRow(db, e.lookupSQL, secret[:], append(grantTable.ScanTargets(found.grant), secretTable.ScanTargets(&found.secret)...)...)
	return found, failed("finding a grant", err)
}

// code returns the code whose column has the value, and with lock keeps others from changing it until the transaction ends.
func (e engine) code(db *gorm.DB, column string, value any, lock bool) (code codeRow, err error) {
	query := e.selectBy(db, "SELECT "+codeColumns+" FROM authorization_codes WHERE "+column+" = ?", lock)
	err = e.readRow(db, query, value, codeTable.ScanTargets(&code)...)
	return code, failed("finding a code", err)
}

// selectBy completes a query that has one parameter.
func (e engine) selectBy(db *gorm.DB, query string, lock bool) string {
	query = strings.Replace(query, "?", string(mapper.AppendParameter(db, nil, 1)), 1)
	if lock && e.server {
		query += " FOR UPDATE"
	}
	return query
}

// query runs a query by a key. In a file it ignores the end of ctx: database/sql would start two goroutines to watch it, and the query takes
// microseconds.
func (e engine) query(db *gorm.DB, query string, key any) (*sql.Rows, error) {
	ctx := db.Statement.Context
	if !e.server {
		ctx = context.WithoutCancel(ctx)
	}
	return db.Statement.ConnPool.QueryContext(ctx, query, key)
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

func readRows[R any](e engine, db *gorm.DB, table *mapper.Table[R], query string, key any) (all []R, err error) {
	rows, err := e.query(db, query, key)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var row R
		if err := rows.Scan(table.ScanTargets(&row)...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// cacheEntries returns what lookup will return for these secrets after the commit, without spent secrets, which are hardly ever looked up.
func cacheEntries(grant *grantRow, secrets []*secretRow) []sqlite.CacheEntry {
	grantTable.Normalize(grant)
	rows := make([]sqlite.CacheEntry, 0, len(secrets))
	for _, secret := range secrets {
		if secret.isSpent(grant) {
			continue
		}
		row := &secretWithGrant{secret: *secret, grant: grant}
		secretTable.Normalize(&row.secret)
		rows = append(rows, row)
	}
	return rows
}

func (f *secretWithGrant) restore() *oauth.AccessGrant {
	if f.restored.Load() == nil {
		f.restored.CompareAndSwap(nil, oauth.RestoreGrant(oauth.GrantSnapshot(*f.grant), oauth.SecretSnapshot(f.secret)))
	}
	return f.restored.Load().Copy()
}
