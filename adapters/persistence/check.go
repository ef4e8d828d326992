package persistence

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
	"gorm.io/gorm"
)

// Check is the result of one check.
type Check struct {
	Name    string `json:"check"`
	Found   string `json:"found"`
	Problem string `json:"problem,omitempty"` // and its remedy; "" when there is none
}

// newCheck returns a Check with the problem err, or with the finding when err is nil.
func newCheck(name, found string, err error) Check {
	if err != nil {
		return Check{Name: name, Problem: err.Error()}
	}
	return Check{Name: name, Found: found}
}

// clockLimit keeps the clocks of two machines, each compared with that of their database, within
// the overlap of two queries for revocations.
const clockLimit = 2 * time.Second

// isReadableCode reports that the domain restores all that the row holds.
func isReadableCode(c oauth.CodeSnapshot) bool {
	back := oauth.RestoreCode(c).Snapshot()
	back.ForgetAfter = c.ForgetAfter // derived from the others, by another version in another way
	return c.HasKnownState() && reflect.DeepEqual(back, c)
}

// isReadableGrant reports that the domain restores all that the row holds.
func isReadableGrant(g oauth.GrantSnapshot) bool {
	back := oauth.RestoreGrant(g).Snapshot()
	back.ForgetAfter = g.ForgetAfter
	return g.HasKnownState() && oauth.RestoreToolPins(g.Tools).IsReadable() && reflect.DeepEqual(back, g)
}

var errUnreadable = errors.New(
	"this version cannot read it: restore the database from a backup, or use the version that has written it")

// checkRows reads every row as a service would.
func checkRows[R any](db *gorm.DB, name string, of table[R], isReadable func(R) bool) Check {
	read := 0
	for row, err := range of.each(db) {
		switch {
		case err != nil:
			return newCheck(name, "", fmt.Errorf("a row behind the first %d: %w: %w", read, err, errUnreadable))
		case !isReadable(row):
			return newCheck(name, "", fmt.Errorf("the row %s: %w", of.id(row), errUnreadable))
		}
		read++
	}
	return newCheck(name, fmt.Sprintf("rows: %d, all readable", read), nil)
}

// Checks examines the whole store and changes nothing. When the schema is not this program's, it
// examines nothing else.
func (s *Store) Checks(ctx context.Context) []Check {
	schema := newCheck("schema", fmt.Sprintf("%d migrations, as this version has them", len(migrations)),
		s.compareSchema())
	if schema.Problem != "" {
		return []Check{schema}
	}
	db := s.reader.WithContext(ctx)
	checks := []Check{
		schema,
		newCheck("durability", s.engine.name+" loses nothing that was answered", s.durable()),
		s.checkSecret(db),
	}
	if s.engine.server {
		checks = append(checks, checkClock(db, s.engine.clock))
	} else {
		checks = append(checks, checkFile(db))
	}
	return append(checks,
		checkRows(db, "authorization_codes", codes, isReadableCode),
		checkRows(db, "grants", grants, isReadableGrant),
		countRows(db, "client_documents"),
		countRows(db, "used_assertions"),
		countRows(db, "trace_steps"))
}

func (s *Store) checkSecret(db *gorm.DB) Check {
	used, err := s.compareSecret(db)
	if !used {
		return newCheck("server secret", "no service has used one with this database yet", err)
	}
	return newCheck("server secret", "it is the one that the database was used with", err)
}

func countRows(db *gorm.DB, table string) Check {
	var rows int64
	err := db.Table(table).Count(&rows).Error
	return newCheck(table, fmt.Sprintf("rows: %d", rows), failed("counting the rows", err))
}

// checkClock compares this machine's clock with the one of a server. query returns the server's
// time in milliseconds; the time that it takes does not count as a difference.
func checkClock(db *gorm.DB, query string) Check {
	var there int64
	before := time.Now()
	if err := db.Raw(query).Scan(&there).Error; err != nil {
		return newCheck("clock", "", fmt.Errorf("asking the server for its time: %w", err))
	}
	apart := max(before.Sub(time.UnixMilli(there)), time.Until(time.UnixMilli(there)), 0).Round(time.Millisecond)
	if apart > clockLimit {
		return newCheck("clock", "",
			fmt.Errorf("this machine's clock and the database server's are %s apart: let both follow the same time "+
				"servers (NTP)", apart))
	}
	return newCheck("clock", fmt.Sprintf("within %s of the database server's", max(apart, time.Millisecond)), nil)
}

// checkFile lets SQLite check its file.
func checkFile(db *gorm.DB) Check {
	var results []string
	err := sqlite.Explain(db.Raw("PRAGMA integrity_check").Scan(&results).Error)
	if err == nil && !slices.Equal(results, []string{"ok"}) {
		err = fmt.Errorf("the file is damaged, restore it: %q", results)
	}
	return newCheck("file", "undamaged", err)
}
