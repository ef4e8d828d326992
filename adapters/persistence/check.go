package persistence

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/toolset"
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

// Checks examines the whole store and changes nothing. When the schema is not this program's, it
// examines nothing else.
func (s *Store) Checks(ctx context.Context) []Check {
	schema := newCheck("schema", "as this version has it", s.compareSchema())
	if schema.Problem != "" {
		return []Check{schema}
	}
	db := s.reader.WithContext(ctx)
	clockOrFile := s.checkClock
	if s.file != nil {
		clockOrFile = checkFile
	}
	return []Check{
		schema,
		newCheck("durability", s.engine.name+" loses nothing that was answered", s.durable()),
		newCheck("server secret", "it fits the database", s.compareSecret(db)),
		clockOrFile(db),
		checkRows(db, "authorization_codes", codes, isReadableCode),
		checkRows(db, "grants", grants, isReadableGrant),
	}
}

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
	return g.HasKnownState() && toolset.Restore(g.Tools).IsReadable() && reflect.DeepEqual(back, g)
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

// clockLimit is half of what the clocks of two machines may differ, because each is compared with
// that of the database. Queries for revocations overlap by more than the whole.
const clockLimit = 2 * time.Second

// checkClock compares this machine's clock with the one of a server. The time that the query takes
// does not count as a difference.
func (s *Store) checkClock(db *gorm.DB) Check {
	var milliseconds int64
	before := time.Now()
	err := failed("asking the server for its time", db.Raw(s.engine.clock).Scan(&milliseconds).Error)
	there := time.UnixMilli(milliseconds)
	apart := max(before.Sub(there), time.Until(there), time.Millisecond).Round(time.Millisecond)
	if err == nil && apart > clockLimit {
		err = fmt.Errorf("this machine's clock and the database server's are %s apart: let both follow the same time "+
			"servers (NTP)", apart)
	}
	return newCheck("clock", fmt.Sprintf("within %s of the database server's", apart), err)
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
