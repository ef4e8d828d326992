package persistence

import (
	"bytes"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"gorm.io/gorm"
)

// tabled names the table of a row and lists what the row is made of, its key first. What every request reads or writes goes this way: GORM's reflection costs
// as much again as SQLite.
type tabled interface {
	TableName() string
	columns() []column
}

// column is a column and where its value is.
type column struct {
	name string
	at   any // *string, *int, *[]byte or *moment
}

func (g *grantRow) columns() []column {
	return []column{
		{"id", &g.ID}, {"client_id", &g.ClientID}, {"client_name", &g.ClientName}, {"auth_method", &g.AuthMethod},
		{"redirect_uri", &g.RedirectURI}, {"resource", &g.Resource}, {"scopes", &g.Scopes}, {"subject", &g.Subject}, {"roles", &g.Roles},
		{"state", &g.State}, {"end_reason", &g.EndReason},
		{"created_at", (*moment)(&g.CreatedAt)}, {"ended_at", (*moment)(&g.EndedAt)}, {"last_used_at", (*moment)(&g.LastUsedAt)},
		{"verified_at", (*moment)(&g.VerifiedAt)}, {"idle_end", (*moment)(&g.IdleEnd)}, {"absolute_end", (*moment)(&g.AbsoluteEnd)},
		{"forget_after", (*moment)(&g.ForgetAfter)},
		{"code_digest", &g.CodeDigest}, {"code_challenge", &g.CodeChallenge}, {"code_expires_at", (*moment)(&g.CodeExpiresAt)},
		{"redeemed_at", (*moment)(&g.RedeemedAt)}, {"generation", &g.Generation}, {"successor_box", &g.SuccessorBox},
		{"grace_end", (*moment)(&g.GraceEnd)}, {"host_print", &g.HostPrint}, {"host_box", &g.HostBox}, {"host_wrap", &g.HostWrap},
	}
}

func (s *secretRow) columns() []column {
	return []column{
		{"digest", &s.Digest}, {"grant_id", &s.Grant}, {"kind", &s.Kind}, {"generation", &s.Generation}, {"scopes", &s.Scopes},
		{"host_wrap", &s.HostWrap}, {"revoked_at", (*moment)(&s.RevokedAt)}, {"forget_after", (*moment)(&s.ForgetAfter)},
	}
}

// moment is a time as millis keeps it.
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

// value is what the column keeps: NULL where there is no time and where there are no bytes.
func (c column) value() any {
	switch at := c.at.(type) {
	case *string:
		return *at
	case *int:
		return int64(*at)
	case *[]byte:
		if *at != nil {
			return *at
		}
	case *moment:
		if !time.Time(*at).IsZero() {
			return time.Time(*at).UnixMilli()
		}
	}
	return nil
}

// asRead makes values what the database would return: times of milliseconds, and bytes that nobody else has.
func asRead(columns []column) {
	for _, c := range columns {
		switch at := c.at.(type) {
		case *[]byte:
			*at = bytes.Clone(*at)
		case *moment:
			if !time.Time(*at).IsZero() {
				*at = moment(time.UnixMilli(time.Time(*at).UnixMilli()).UTC())
			}
		}
	}
}

func (c column) equals(other column) bool {
	switch at := c.at.(type) {
	case *string:
		return *at == *other.at.(*string)
	case *int:
		return *at == *other.at.(*int)
	case *[]byte:
		return bytes.Equal(*at, *other.at.(*[]byte))
	default:
		return c.value() == other.value()
	}
}

// insert adds rows.
func insert[R tabled](tx *changes, rows ...R) error {
	first := rows[0].columns()
	statement := make([]byte, 0, 1024)
	statement = append(append(append(statement, "INSERT INTO "...), rows[0].TableName()...), " ("...)
	for i, c := range first {
		statement = append(appendComma(statement, i), c.name...)
	}
	statement = append(statement, ") VALUES "...)
	values := make([]any, 0, len(rows)*len(first))
	for i, row := range rows {
		columns := first
		if i > 0 {
			columns = row.columns()
		}
		statement = append(appendComma(statement, i), '(')
		for j, c := range columns {
			values = append(values, c.value())
			statement = appendPlace(tx.DB, appendComma(statement, j), len(values))
		}
		statement = append(statement, ')')
	}
	return tx.write(string(statement), values...)
}

// rewrite changes the columns that differ in a row that is there. SQLite would touch the index of every column that it is told.
func rewrite[R tabled](tx *changes, was, now R) error {
	before, after := was.columns(), now.columns()
	statement := make([]byte, 0, 256)
	statement = append(append(append(statement, "UPDATE "...), now.TableName()...), " SET "...)
	values := make([]any, 0, len(after))
	for i, c := range after {
		if c.equals(before[i]) {
			continue
		}
		statement = append(append(appendComma(statement, len(values)), c.name...), " = "...)
		values = append(values, c.value())
		statement = appendPlace(tx.DB, statement, len(values))
	}
	if len(values) == 0 {
		return nil
	}
	key := after[0]
	statement = append(append(append(statement, " WHERE "...), key.name...), " = "...)
	values = append(values, key.value())
	return tx.write(string(appendPlace(tx.DB, statement, len(values))), values...)
}

func appendComma(statement []byte, before int) []byte {
	if before == 0 {
		return statement
	}
	return append(statement, ", "...)
}

// appendPlace appends the place of the value with that number, as the engine writes it.
func appendPlace(tx *gorm.DB, statement []byte, number int) []byte {
	if tx.Name() == postgresDialect {
		return strconv.AppendInt(append(statement, '$'), int64(number), 10)
	}
	return append(statement, '?')
}

const postgresDialect = "postgres"

// write is execute that takes note of whether there is something to commit.
func (c *changes) write(statement string, values ...any) error {
	done, err := execute(c.DB, statement, values...)
	if err != nil {
		return err
	}
	rows, err := done.RowsAffected()
	c.wrote = c.wrote || rows > 0
	return err
}

// execute goes by the statement that GORM or the driver has prepared.
func execute(tx *gorm.DB, statement string, values ...any) (sql.Result, error) {
	return tx.Statement.ConnPool.ExecContext(tx.Statement.Context, statement, values...)
}

// listed are the columns of a row, as a question names them.
func listed(row tabled) string {
	names := make([]byte, 0, 512)
	for i, c := range row.columns() {
		names = append(append(append(appendComma(names, i), row.TableName()...), '.'), c.name...)
	}
	return string(names)
}
