package persistence

import (
	"cmp"
	"context"
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
	query := "SELECT " + codeColumns + " FROM authorization_codes WHERE " + column + " = " + string(mapper.AppendParameter(db, nil, 1))
	if lock && e.server {
		query += " FOR UPDATE"
	}
	err = e.readRow(db, query, value, codeTable.ScanTargets(&code)...)
	return code, failed("finding a code", err)
}

// readRow reads one row by its key. In a file it ignores the end of ctx: database/sql would start two goroutines to watch it, and the query takes
// microseconds.
func (e engine) readRow(db *gorm.DB, query string, key any, into ...any) error {
	ctx := db.Statement.Context
	if !e.server {
		ctx = context.WithoutCancel(ctx)
	}
	rows, err := db.Statement.ConnPool.QueryContext(ctx, query, key)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return cmp.Or(rows.Err(), gorm.ErrRecordNotFound)
	}
	return rows.Scan(into...)
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
		f.restored.CompareAndSwap(nil, oauth.RestoreGrant(oauth.GrantSnapshot(*f.grant), oauth.SecretSnapshot(f.secret)).Share())
	}
	return f.restored.Load().Copy()
}
