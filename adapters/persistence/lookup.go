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

	first atomic.Pointer[oauth.AccessGrant] // to be restored, of which all others are copies
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

func (e engine) finds(db *gorm.DB, secret oauth.Digest) (found *secretWithGrant, err error) {
	found = &secretWithGrant{grant: new(grantRow)}
	err = e.reads(db, e.find, secret[:], append(grantTable.ScanTargets(found.grant), secretTable.ScanTargets(&found.secret)...)...)
	return found, failed("finding a grant", err)
}

// code returns the code whose column has the value, and with lock keeps others from changing it until the transaction ends.
func (e engine) code(db *gorm.DB, column string, value any, lock bool) (code codeRow, err error) {
	question := "SELECT " + codeColumns + " FROM authorization_codes WHERE " + column + " = " + string(mapper.AppendPlaceholder(db, nil, 1))
	if lock && e.server {
		question += " FOR UPDATE"
	}
	err = e.reads(db, question, value, codeTable.ScanTargets(&code)...)
	return code, failed("finding a code", err)
}

// reads asks for one row by its key. Whoever hangs up meanwhile is not listened to: two goroutines would have to watch for it, for what
// takes microseconds.
func (e engine) reads(db *gorm.DB, question string, key any, into ...any) error {
	ctx := db.Statement.Context
	if !e.server {
		ctx = context.WithoutCancel(ctx)
	}
	rows, err := db.Statement.ConnPool.QueryContext(ctx, question, key)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return cmp.Or(rows.Err(), gorm.ErrRecordNotFound)
	}
	return rows.Scan(into...)
}

// written are the rows that finds will return for these secrets once they are committed, but for those that are spent: hardly anybody asks for them.
func written(grant *grantRow, secrets []*secretRow) []sqlite.CacheEntry {
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
	if f.first.Load() == nil {
		f.first.CompareAndSwap(nil, oauth.RestoreGrant(oauth.GrantSnapshot(*f.grant), oauth.SecretSnapshot(f.secret)).Share())
	}
	return f.first.Load().Copy()
}
