package persistence

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// foundRow is a secret with the grant that it belongs to.
type foundRow struct {
	Secret secretRow
	Grant  grantRow
}

// column is where a column of the query goes.
type column struct {
	name string
	into any
}

// columns are read without GORM's reflection, which costs as much again as the query: every bearer check reads them.
func (f *foundRow) columns() []column {
	g, s := &f.Grant, &f.Secret
	return []column{
		{"grants.id", &g.ID}, {"client_id", &g.ClientID}, {"client_name", &g.ClientName}, {"auth_method", &g.AuthMethod},
		{"redirect_uri", &g.RedirectURI}, {"resource", &g.Resource}, {"grants.scopes", &g.Scopes}, {"subject", &g.Subject}, {"roles", &g.Roles},
		{"state", &g.State}, {"end_reason", &g.EndReason},
		{"created_at", (*moment)(&g.CreatedAt)}, {"ended_at", (*moment)(&g.EndedAt)}, {"last_used_at", (*moment)(&g.LastUsedAt)},
		{"verified_at", (*moment)(&g.VerifiedAt)}, {"idle_end", (*moment)(&g.IdleEnd)}, {"absolute_end", (*moment)(&g.AbsoluteEnd)},
		{"grants.forget_after", (*moment)(&g.ForgetAfter)},
		{"code_digest", &g.CodeDigest}, {"code_challenge", &g.CodeChallenge}, {"code_expires_at", (*moment)(&g.CodeExpiresAt)},
		{"redeemed_at", (*moment)(&g.RedeemedAt)}, {"grants.generation", &g.Generation}, {"successor_box", &g.SuccessorBox},
		{"grace_end", (*moment)(&g.GraceEnd)}, {"host_print", &g.HostPrint}, {"host_box", &g.HostBox}, {"grants.host_wrap", &g.HostWrap},
		{"digest", &s.Digest}, {"grant_id", &s.Grant}, {"kind", &s.Kind}, {"secrets.generation", &s.Generation}, {"secrets.scopes", &s.Scopes},
		{"secrets.host_wrap", &s.HostWrap}, {"revoked_at", (*moment)(&s.RevokedAt)}, {"secrets.forget_after", (*moment)(&s.ForgetAfter)},
	}
}

var findGrant = func() string {
	var names []string
	for _, c := range new(foundRow).columns() {
		names = append(names, c.name)
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM secrets JOIN grants ON id = grant_id WHERE digest = ?"
}()

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
		into[i] = c.into
	}
	return found, failed("finding a grant", rows.Scan(into...))
}

func (f foundRow) restore() *oauth.AccessGrant {
	return oauth.RestoreGrant(oauth.GrantSnapshot(f.Grant), oauth.SecretSnapshot(f.Secret))
}

// moment reads what millis writes.
type moment time.Time

var _ sql.Scanner = (*moment)(nil)

// Scan implements sql.Scanner.
func (m *moment) Scan(value any) error {
	switch stored := value.(type) {
	case nil:
		*m = moment{}
	case int64:
		*m = moment(time.UnixMilli(stored).UTC())
	default:
		return fmt.Errorf("reading a time: %T is no number of milliseconds", value)
	}
	return nil
}
