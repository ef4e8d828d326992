package persistence

import (
	"cmp"
	"context"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// foundRow is a secret with the grant that it belongs to.
type foundRow struct {
	Secret secretRow
	Grant  grantRow
}

func (f *foundRow) columns() []column { return append(f.Grant.columns(), f.Secret.columns()...) }

var findGrant = "SELECT " + listed(new(grantRow)) + ", " + listed(new(secretRow)) + " FROM secrets JOIN grants ON id = grant_id WHERE digest = ?"

// finds asks the statement that GORM or the driver has prepared. Whoever hangs up meanwhile is not listened to: two goroutines would have to watch
// for it, for what takes microseconds.
func (e engine) finds(db *gorm.DB, secret oauth.Digest) (found foundRow, err error) {
	ctx := db.Statement.Context
	if !e.server {
		ctx = context.WithoutCancel(ctx)
	}
	rows, err := db.Statement.ConnPool.QueryContext(ctx, e.find, secret[:])
	if err != nil {
		return found, failed("finding a grant", err)
	}
	defer rows.Close()
	if !rows.Next() {
		return found, failed("finding a grant", cmp.Or(rows.Err(), gorm.ErrRecordNotFound))
	}
	columns := found.columns()
	into := make([]any, len(columns))
	for i, c := range columns {
		into[i] = c.at
	}
	return found, failed("finding a grant", rows.Scan(into...))
}

func (f foundRow) restore() *oauth.AccessGrant {
	return oauth.RestoreGrant(oauth.GrantSnapshot(f.Grant), oauth.SecretSnapshot(f.Secret))
}
