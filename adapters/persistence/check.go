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
	"github.com/pasteport/pasteport/domain/seal"
)

// Check is one thing that was looked at.
type Check struct {
	Name    string `json:"check"`
	Found   string `json:"found"`
	Problem string `json:"problem,omitempty"` // and what to do about it; "" when it holds
}

// clockLimit holds the clocks of two machines, each by that of their database, within what endings that others must see reach back.
const clockLimit = 2 * time.Second

// Checks looks at the whole store and changes nothing. Behind a schema that is not this program's nothing else is looked at.
func (s *Store) Checks(ctx context.Context) []Check {
	schema := check("schema", fmt.Sprintf("%d migrations, as this version has them", len(migrations)), s.compareSchema())
	if schema.Problem != "" {
		return []Check{schema}
	}
	db := s.reader.WithContext(ctx)
	checks := []Check{
		schema,
		check("durability", s.engine.name+" loses nothing that was answered", s.durable()),
		s.checkSecret(ctx),
	}
	if s.engine.server {
		checks = append(checks, s.checkClock(db))
	} else {
		checks = append(checks, checkFile(db))
	}
	checks = append(checks, checkRows[grantRow](db), checkRows[secretRow](db), checkOrphans(db), checkRows[assertionRow](db), checkRows[stepRow](db))
	return append(checks, checkCounters(db))
}

func check(name, found string, err error) Check {
	if err != nil {
		return Check{Name: name, Problem: err.Error()}
	}
	return Check{Name: name, Found: found}
}

func (s *Store) checkSecret(ctx context.Context) Check {
	found, err := s.secretFits(ctx)
	return check("server secret", found, err)
}

func (s *Store) secretFits(ctx context.Context) (found string, err error) {
	prints, err := seal.NewKeyRing(s).SecretFingerprints()
	if err != nil {
		return "", fmt.Errorf("%w: name the file that the replicas have with server-secret, or restore it", err)
	}
	if !s.engine.server {
		return fmt.Sprintf("%d in the file beside the database", len(prints)), nil
	}
	known, err := fingerprints(s.reader.WithContext(ctx))
	switch {
	case err != nil:
		return "", err
	case len(known) == 0:
		return "no replica has used one with this database yet", nil
	case !known[0].isAmong(prints):
		return "", fmt.Errorf("%w: name the file that the replicas have with server-secret", oauth.ErrOtherSecret)
	}
	return "it is the one that the database was used with", nil
}

// checkClock counts the time that the question takes in our favour.
func (s *Store) checkClock(db *gorm.DB) Check {
	var there int64
	before := time.Now()
	if err := db.Raw(s.engine.clock).Scan(&there).Error; err != nil {
		return check("clock", "", failed("asking the server for its time", err))
	}
	apart := max(before.Sub(time.UnixMilli(there)), time.Until(time.UnixMilli(there)), 0).Round(time.Millisecond)
	if apart > clockLimit {
		return check("clock", "", fmt.Errorf("this machine's clock and the database server's are %s apart: let both follow the same time servers (NTP)", apart))
	}
	return check("clock", fmt.Sprintf("within %s of the database server's", max(apart, time.Millisecond)), nil)
}

func checkFile(db *gorm.DB) Check {
	var said []string
	err := db.Raw("PRAGMA integrity_check").Scan(&said).Error
	if err == nil && !slices.Equal(said, []string{"ok"}) {
		err = fmt.Errorf("the file is damaged, restore it: %q", said)
	}
	if err != nil {
		err = sqlite.Explain(err)
	}
	return check("file", "undamaged", err)
}

var errUnreadable = errors.New("this version cannot read it: restore the database from a backup, or use the version that has written it")

// checkRows reads every row as a service would.
func checkRows[R row](db *gorm.DB) Check {
	var none R
	read := 0
	err := batches(db, func(rows []R) error {
		for _, r := range rows {
			if column, key := r.key(); !readable(r) {
				return fmt.Errorf("the row whose %s is %s: %w", column, named(key), errUnreadable)
			}
			read++
		}
		return nil
	})
	if err != nil && !errors.Is(err, errUnreadable) {
		err = fmt.Errorf("a row behind the first %d: %w: %w", read, err, errUnreadable)
	}
	return check(none.TableName(), fmt.Sprintf("%d rows, all readable", read), err)
}

func named(key any) string {
	if digest, ok := key.([]byte); ok {
		return fmt.Sprintf("%x", digest)
	}
	return fmt.Sprint(key)
}

// readable reports that nothing of a row is lost when the domain has taken it up.
func readable(r row) bool {
	switch r := any(r).(type) {
	case grantRow:
		back, _ := rowsOf(r.restore())
		back.ForgetAfter = r.ForgetAfter // which follows from the others, in another version in another way
		return slices.Contains([]string{"pending", "active", "ended"}, r.State) && reflect.DeepEqual(back, r)
	case secretRow:
		kinds := []oauth.SecretKind{oauth.AccessTokenSecret, oauth.RefreshTokenSecret, oauth.CodeSecret}
		return slices.Contains(kinds, oauth.SecretKind(r.Kind))
	}
	return true
}

func checkOrphans(db *gorm.DB) Check {
	var orphans int64
	err := db.Raw("SELECT count(*) FROM secrets WHERE kind = ? AND grant_id NOT IN (SELECT id FROM grants)", oauth.RefreshTokenSecret).Scan(&orphans).Error
	if err == nil && orphans > 0 {
		err = fmt.Errorf("%d refresh tokens belong to no grant and are worth nothing: an older version leaves them that runs beside this one, which is to be stopped; otherwise restore the database from a backup", orphans)
	}
	return check("secrets of grants", "every refresh token has its grant", err)
}

func checkCounters(db *gorm.DB) Check {
	var windows int64
	err := db.Model(&counterRow{}).Count(&windows).Error
	return check("counters", fmt.Sprintf("%d rows", windows), failed("counting the counters", err))
}
