package persistence

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// table has the statements of a table in plain SQL. Through GORM, a code flow would cost 1.3 times
// as much, and a refresh 1.5 to 1.9 times (2026-11-28).
type table[R any] struct {
	rows, insert, update string
	changing             int                // the number of columns that update writes
	fields               func(row *R) []any // one for each column, to scan into and to take values from
}

// newTable describes a table whose columns are the id, those of changing, those of others, and the
// version. update does not write those of others, which begin with a comma.
func newTable[R any](name, changing, others string, fields func(*R) []any) table[R] {
	columns := "id, " + changing + others + ", version"
	return table[R]{
		rows: "SELECT " + columns + " FROM " + name,
		insert: "INSERT INTO " + name + " (" + columns + ") VALUES (?" +
			strings.Repeat(", ?", strings.Count(columns, ",")) + ")",
		update: "UPDATE " + name + " SET " + strings.ReplaceAll(changing, ",", " = ?,") +
			" = ?, version = version + 1 WHERE id = ? AND version = ?",
		changing: strings.Count(changing, ",") + 1,
		fields:   fields,
	}
}

func (t table[R]) id(row R) string { return *t.fields(&row)[0].(*string) }

// read returns the rows that a condition selects.
func (t table[R]) read(db *gorm.DB, condition string, values ...any) (all []R, err error) {
	err = t.scan(db, func(row R) { all = append(all, row) }, condition, values...)
	return all, err
}

// scan calls use with each row that a condition selects.
func (t table[R]) scan(db *gorm.DB, use func(R), condition string, values ...any) error {
	found, err := db.Statement.ConnPool.QueryContext(db.Statement.Context, numbered(db, t.rows+" WHERE "+condition),
		values...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var row R
		if err := found.Scan(t.fields(&row)...); err != nil {
			return err
		}
		use(row)
	}
	return found.Err()
}

// pageSize is the number of rows that one query returns, so that no query is long and few rows are
// in memory.
const pageSize = 500

// each iterates over all rows in the order of their ids.
func (t table[R]) each(db *gorm.DB) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for last, more := "", true; more; {
			page, err := t.read(db, "id > ? ORDER BY id LIMIT ?", last, pageSize)
			if err != nil {
				yield(*new(R), err)
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
				last = t.id(row)
			}
			more = len(page) == pageSize
		}
	}
}

// errOvertaken means that another process has changed a row since it was read.
var errOvertaken = errors.New("another process was faster")

// write updates the rows of after that differ from those of before, and inserts those beyond
// before. It fails with errOvertaken if another process has changed a row since it was read.
func (t table[R]) write(db *gorm.DB, before, after []R) error {
	for i := range after {
		is := t.fields(&after[i])
		if i >= len(before) {
			is[len(is)-1] = 1 // the version
			if _, err := execute(db, t.insert, is...); err != nil {
				return overtaken(err, "adding a row")
			}
			continue
		}
		if reflect.DeepEqual(before[i], after[i]) {
			continue
		}
		was := t.fields(&before[i])
		id, version := was[0], was[len(was)-1]
		changed, err := execute(db, t.update, slices.Concat(is[1:1+t.changing], []any{id, version})...)
		switch {
		case err != nil:
			return failed("updating a row", err)
		case changed == 0:
			return errOvertaken
		}
	}
	return nil
}

// execute runs a statement and returns the number of rows that it has changed.
func execute(db *gorm.DB, statement string, values ...any) (int64, error) {
	done, err := db.Statement.ConnPool.ExecContext(db.Statement.Context, numbered(db, statement), values...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// numbered replaces each ? by its number, as PostgreSQL's driver expects.
func numbered(db *gorm.DB, statement string) string {
	if db.Name() != "postgres" {
		return statement
	}
	parts := strings.Split(statement, "?")
	for i := range parts[1:] {
		parts[i] += "$" + strconv.Itoa(i+1)
	}
	return strings.Join(parts, "")
}

// consentColumns are the columns that both tables have, in the order of consentFields.
const consentColumns = "client_id, client_name, auth_method, redirect_uri, resource, scopes, subject, account, " +
	"token_id, roles, state, end_reason, created_at, forget_after, host_print, host_box, host_wrap, host_key, host_new"

// consentFields returns the id and what fits consentColumns.
func consentFields(c *oauth.ConsentSnapshot) []any {
	return []any{
		&c.ID,
		&c.ClientID,
		&c.ClientName,
		&c.AuthMethod,
		&c.RedirectURI,
		&c.Resource,
		&c.Scopes,
		&c.Subject,
		&c.Account,
		&c.TokenID,
		&c.Roles,
		&c.State,
		&c.EndReason,
		moment{&c.CreatedAt},
		moment{&c.ForgetAfter},
		&c.HostPrint,
		&c.HostBox,
		&c.HostWrap,
		&c.HostKey,
		&c.HostNew,
	}
}

var codes = newTable("authorization_codes",
	consentColumns+", digest, code_challenge, expires_at, grant_end, redeemed_at, withdrawn_at", "",
	func(c *oauth.CodeSnapshot) []any {
		return append(consentFields(&c.ConsentSnapshot),
			&c.Digest,
			&c.CodeChallenge,
			moment{&c.ExpiresAt},
			moment{&c.GrantEnd},
			moment{&c.RedeemedAt},
			moment{&c.WithdrawnAt},
			&c.Version,
		)
	})

var grants = newTable("grants",
	consentColumns+", tools, ended_at, revoked_at, verified_at, idle_end, absolute_end, generation, refresh_digest, "+
		"rotations, issued_access, access_tokens", ", last_used_at, last_used_token",
	func(g *oauth.GrantSnapshot) []any {
		return append(consentFields(&g.ConsentSnapshot),
			&g.Tools,
			moment{&g.EndedAt},
			moment{&g.RevokedAt},
			moment{&g.VerifiedAt},
			moment{&g.IdleEnd},
			moment{&g.AbsoluteEnd},
			&g.Generation,
			&g.RefreshDigest,
			list[oauth.Rotation]{&g.Rotations},
			&g.IssuedAccess,
			list[oauth.AccessToken]{&g.AccessTokens},
			moment{&g.LastUsedAt},
			&g.LastUsedToken,
			&g.Version,
		)
	})

// assertionRow is a client assertion that was used.
type assertionRow struct {
	Digest      []byte    `gorm:"primaryKey"`
	ForgetAfter time.Time `gorm:"serializer:pasteport_millis"`
}

func (assertionRow) TableName() string { return "used_assertions" }
