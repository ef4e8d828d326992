package persistence

import (
	"bytes"
	"database/sql"
	"fmt"
	"strconv"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
)

// layout is how rows of one kind are read and written. What every request reads or writes goes this way: GORM's reflection costs as much
// again as SQLite.
type layout[R any] struct {
	name    string
	columns []column[R] // the key first
	inserts sync.Map    // statements by how many rows they add, or less than none on PostgreSQL
	updates sync.Map    // statements by the columns that they change
}

// column is a column and where its value is in a row: a *string, *int, *[]byte or *moment.
type column[R any] struct {
	name string
	in   func(row *R) any
}

var grantLayout = &layout[grantRow]{name: grantRow{}.TableName(), columns: []column[grantRow]{
	{"id", func(g *grantRow) any { return &g.ID }},
	{"client_id", func(g *grantRow) any { return &g.ClientID }},
	{"client_name", func(g *grantRow) any { return &g.ClientName }},
	{"auth_method", func(g *grantRow) any { return &g.AuthMethod }},
	{"redirect_uri", func(g *grantRow) any { return &g.RedirectURI }},
	{"resource", func(g *grantRow) any { return &g.Resource }},
	{"scopes", func(g *grantRow) any { return &g.Scopes }},
	{"subject", func(g *grantRow) any { return &g.Subject }},
	{"roles", func(g *grantRow) any { return &g.Roles }},
	{"state", func(g *grantRow) any { return &g.State }},
	{"end_reason", func(g *grantRow) any { return &g.EndReason }},
	{"created_at", func(g *grantRow) any { return (*moment)(&g.CreatedAt) }},
	{"ended_at", func(g *grantRow) any { return (*moment)(&g.EndedAt) }},
	{"last_used_at", func(g *grantRow) any { return (*moment)(&g.LastUsedAt) }},
	{"verified_at", func(g *grantRow) any { return (*moment)(&g.VerifiedAt) }},
	{"idle_end", func(g *grantRow) any { return (*moment)(&g.IdleEnd) }},
	{"absolute_end", func(g *grantRow) any { return (*moment)(&g.AbsoluteEnd) }},
	{"forget_after", func(g *grantRow) any { return (*moment)(&g.ForgetAfter) }},
	{"code_digest", func(g *grantRow) any { return &g.CodeDigest }},
	{"code_challenge", func(g *grantRow) any { return &g.CodeChallenge }},
	{"code_expires_at", func(g *grantRow) any { return (*moment)(&g.CodeExpiresAt) }},
	{"redeemed_at", func(g *grantRow) any { return (*moment)(&g.RedeemedAt) }},
	{"generation", func(g *grantRow) any { return &g.Generation }},
	{"refresh_digest", func(g *grantRow) any { return &g.RefreshDigest }},
	{"successor_box", func(g *grantRow) any { return &g.SuccessorBox }},
	{"grace_end", func(g *grantRow) any { return (*moment)(&g.GraceEnd) }},
	{"host_print", func(g *grantRow) any { return &g.HostPrint }},
	{"host_box", func(g *grantRow) any { return &g.HostBox }},
	{"host_wrap", func(g *grantRow) any { return &g.HostWrap }},
}}

var secretLayout = &layout[secretRow]{name: secretRow{}.TableName(), columns: []column[secretRow]{
	{"digest", func(s *secretRow) any { return &s.Digest }},
	{"grant_id", func(s *secretRow) any { return &s.Grant }},
	{"kind", func(s *secretRow) any { return &s.Kind }},
	{"generation", func(s *secretRow) any { return &s.Generation }},
	{"predecessor", func(s *secretRow) any { return &s.Predecessor }},
	{"scopes", func(s *secretRow) any { return &s.Scopes }},
	{"host_wrap", func(s *secretRow) any { return &s.HostWrap }},
	{"revoked_at", func(s *secretRow) any { return (*moment)(&s.RevokedAt) }},
	{"forget_after", func(s *secretRow) any { return (*moment)(&s.ForgetAfter) }},
}}

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

// valueAt is what the column keeps: NULL where there is no time and where there are no bytes.
func valueAt(place any) any {
	switch at := place.(type) {
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

func sameAt(place, other any) bool {
	switch at := place.(type) {
	case *string:
		return *at == *other.(*string)
	case *int:
		return *at == *other.(*int)
	case *[]byte:
		return bytes.Equal(*at, *other.(*[]byte))
	default:
		return time.Time(*place.(*moment)).UnixMilli() == time.Time(*other.(*moment)).UnixMilli()
	}
}

// places are where the values of a row are, in the order of its columns.
func (l *layout[R]) places(row *R) []any {
	places := make([]any, 0, len(l.columns))
	for _, c := range l.columns {
		places = append(places, c.in(row))
	}
	return places
}

// asRead makes of a row what the database would return: times of milliseconds, and bytes that nobody else has.
func (l *layout[R]) asRead(row *R) {
	for _, c := range l.columns {
		switch at := c.in(row).(type) {
		case *[]byte:
			*at = bytes.Clone(*at)
		case *moment:
			if !time.Time(*at).IsZero() {
				*at = moment(time.UnixMilli(time.Time(*at).UnixMilli()).UTC())
			}
		}
	}
}

// insert adds rows.
func (l *layout[R]) insert(tx *sqlite.Tx, rows ...*R) error {
	values := make([]any, 0, len(rows)*len(l.columns))
	for _, row := range rows {
		for _, c := range l.columns {
			values = append(values, valueAt(c.in(row)))
		}
	}
	return executeWrite(tx, l.inserting(tx.DB, len(rows)), values...)
}

// mostKept is how many rows a statement may add that is remembered.
const mostKept = stepsAtOnceInFile

// inserting is the statement that adds so many rows.
func (l *layout[R]) inserting(tx *gorm.DB, rows int) string {
	key := rows
	if tx.Name() == postgresDialect {
		key = -rows
	}
	if known, found := l.inserts.Load(key); found {
		return known.(string)
	}
	statement := append([]byte("INSERT INTO "+l.name+" ("), l.listed("")...)
	statement = append(statement, ") VALUES "...)
	for row := range rows {
		statement = append(appendComma(statement, row), '(')
		for i := range l.columns {
			statement = appendPlace(tx, appendComma(statement, i), row*len(l.columns)+i+1)
		}
		statement = append(statement, ')')
	}
	made := string(statement)
	if rows <= mostKept {
		l.inserts.Store(key, made)
	}
	return made
}

// rewrite changes the columns that differ in a row that is there. SQLite would touch the index of every column that it is told.
func (l *layout[R]) rewrite(tx *sqlite.Tx, was, now *R) error {
	changed := changedColumns{postgres: tx.Name() == postgresDialect}
	values := make([]any, 0, mostlyChanged)
	for i, c := range l.columns {
		if place := c.in(now); !sameAt(place, c.in(was)) {
			changed.columns |= 1 << i
			values = append(values, valueAt(place))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return executeWrite(tx, l.updating(tx.DB, changed), append(values, valueAt(l.columns[0].in(now)))...)
}

// mostlyChanged is as many columns as a refresh changes, and the key.
const mostlyChanged = 8

// changedColumns are bits, the key's the lowest.
type changedColumns struct {
	columns  uint64
	postgres bool
}

// updating is the statement that changes these columns of one row.
func (l *layout[R]) updating(tx *gorm.DB, changed changedColumns) string {
	if known, found := l.updates.Load(changed); found {
		return known.(string)
	}
	statement := []byte("UPDATE " + l.name + " SET ")
	places := 0
	for i, c := range l.columns {
		if changed.columns&(1<<i) != 0 {
			statement = append(append(appendComma(statement, places), c.name...), " = "...)
			places++
			statement = appendPlace(tx, statement, places)
		}
	}
	made := string(appendPlace(tx, append(statement, " WHERE "+l.columns[0].name+" = "...), places+1))
	l.updates.Store(changed, made)
	return made
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

// executeWrite executes a statement and records whether there is something to commit.
func executeWrite(tx *sqlite.Tx, statement string, values ...any) error {
	done, err := execute(tx.DB, statement, values...)
	if err != nil {
		return err
	}
	rows, err := done.RowsAffected()
	if rows > 0 {
		tx.WroteRow()
	}
	return err
}

// execute goes by the statement that GORM or the driver has prepared.
func execute(tx *gorm.DB, statement string, values ...any) (sql.Result, error) {
	return tx.Statement.ConnPool.ExecContext(tx.Statement.Context, statement, values...)
}

// listed are the columns, as a question names them behind whose they are.
func (l *layout[R]) listed(whose string) string {
	names := make([]byte, 0, 512)
	for i, c := range l.columns {
		names = append(append(appendComma(names, i), whose...), c.name...)
	}
	return string(names)
}
