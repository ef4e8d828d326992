package persistence

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/pasteport/pasteport/adapters/persistence/maintenance"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// tables are the tables that are checked and copied, in the order in which they refer to each
// other. Counters and the fingerprint of the server secret concern the running service only.
var tables = []maintenance.Table{
	maintenance.TableOf(isReadableCode),
	maintenance.TableOf(isReadableGrant),
	maintenance.TableOf(func(assertionRow) bool {
		return true
	}), maintenance.TableOf(func(stepRow) bool { return true }),
	maintenance.TableOf(isReadableDocument),
}

// Key implements maintenance.Row.
func (c codeRow) Key() (column string, value any) { return "id", c.ID }

// Key implements maintenance.Row.
func (g grantRow) Key() (column string, value any) { return "id", g.ID }

// Key implements maintenance.Row.
func (a assertionRow) Key() (column string, value any) { return "digest", a.Digest }

// Key implements maintenance.Row.
func (s stepRow) Key() (column string, value any) { return "number", s.Number }

// isReadableCode reports that the domain restores all that the row holds.
func isReadableCode(c codeRow) bool {
	back := codeRow(c.restore().Snapshot())
	back.ForgetAfter = c.ForgetAfter // derived from the others
	return oauth.CodeSnapshot(c).HasKnownState() && oauth.RestoreToolDigests(c.Tools).IsReadable() &&
		reflect.DeepEqual(back, c)
}

// isReadableGrant reports that the domain restores all that the row holds.
func isReadableGrant(g grantRow) bool {
	back := grantRow(g.restore().Snapshot())
	back.ForgetAfter = g.ForgetAfter // derived from the others, by another version in another way
	return oauth.GrantSnapshot(g).HasKnownState() && oauth.RestoreToolDigests(g.Tools).IsReadable() &&
		reflect.DeepEqual(back, g)
}

// isReadableDocument reports that the row is a document under the digest of its URL.
func isReadableDocument(r clientDocumentRow) bool {
	back := newClientDocumentRow(r.restore())
	back.ForgetAfter = r.ForgetAfter // derived from the others, by another version in another way
	return reflect.DeepEqual(back, r)
}

// Checks examines the whole store and changes nothing. When the schema is not this program's, it
// examines nothing else.
func (s *Store) Checks(ctx context.Context) []maintenance.Check {
	schema := maintenance.NewCheck("schema", fmt.Sprintf("%d migrations, as this version has them", len(migrations)),
		s.compareSchema())
	if schema.Problem != "" {
		return []maintenance.Check{schema}
	}
	db := s.reader.WithContext(ctx)
	checks := []maintenance.Check{
		schema,
		maintenance.NewCheck("durability", s.engine.name+" loses nothing that was answered", s.durable()),
		s.checkSecret(db),
	}
	if s.engine.server {
		checks = append(checks, maintenance.CheckClock(db, s.engine.clock))
	} else {
		checks = append(checks, maintenance.CheckFile(db, sqlite.Explain))
	}
	for _, table := range tables {
		checks = append(checks, table.Check(db))
	}
	return append(checks, checkCounters(db))
}

func (s *Store) checkSecret(db *gorm.DB) maintenance.Check {
	used, err := s.compareSecret(db)
	if !used {
		return maintenance.NewCheck("server secret", "no service has used one with this database yet", err)
	}
	return maintenance.NewCheck("server secret", "it is the one that the database was used with", err)
}

func checkCounters(db *gorm.DB) maintenance.Check {
	var windows int64
	err := db.Model(&counterRow{}).Count(&windows).Error
	return maintenance.NewCheck("counters", fmt.Sprintf("rows: %d", windows), failed("counting the counters", err))
}

// pingName is the name of the counter that Ping writes.
var pingName = sha256.Sum256([]byte("pasteport readiness"))

// pingKept is how long the row of the last probe stays before DeleteExpired deletes it.
const pingKept = time.Minute

// Ping performs the operations of a request, so that it fails when requests would: it reads the
// server secret, durably writes a row, and finds the newest grant. It reads from the disk: the
// write before has made SQLite drop its cached pages.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.KeptSecrets(); err != nil {
		return err
	}
	row := counterRow{Name: pingName[:], EndsAt: time.Now().Add(pingKept)}
	err := s.change(ctx, func(tx *sqlite.Tx) error {
		err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
		if err == nil {
			tx.WroteRow()
		}
		return failed("writing", err)
	})
	if err != nil {
		return err
	}
	ctx, done := s.detached(ctx)
	defer done()
	db := s.reader.WithContext(ctx)
	var newest []string // none in a new store
	err = db.Raw("SELECT id FROM grants ORDER BY id DESC LIMIT 1").Scan(&newest).Error
	if err != nil || len(newest) == 0 {
		return failed("reading grants", err)
	}
	if _, err := s.engine.grant(db, newest[0]); !errors.Is(err, oauth.ErrNotFound) {
		return err
	}
	return nil
}

var errNoBackup = errors.New("a database server has a tool of its own: run pg_dump for PostgreSQL, or " +
	"mariadb-dump or mysqldump with --single-transaction")

// Backup writes the SQLite file as it is now to a new file; services may go on meanwhile.
func (s *Store) Backup(ctx context.Context, path string) error {
	if s.engine.server {
		return errNoBackup
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = s.writer.WithContext(ctx).Exec("VACUUM INTO ?", path).Error
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Copy makes the destination hold the codes, grants, used assertions, trace and client documents of
// the source. A SQLite source cannot be written meanwhile; on a server Copy notices in the end that
// the source was written. An interrupted copy is completed by another one; Copy refuses any other
// content of the destination.
func Copy(ctx context.Context, from, to *Store, progress func(maintenance.CopyStep)) error {
	if _, err := from.compareSecret(from.reader.WithContext(ctx)); err != nil {
		return err
	}
	if err := refuseSame(ctx, from, to); err != nil {
		return err
	}
	known, err := fingerprints(to.reader.WithContext(ctx))
	if err != nil {
		return err
	}
	if len(known) > 0 {
		return fmt.Errorf("a service has used the destination, or a copy to it was finished: %w",
			maintenance.ErrNotEmpty)
	}
	target := to.writer.WithContext(ctx)
	err = from.whileLocked(ctx, func(source *gorm.DB) error {
		return maintenance.Copy(source, target, tables, progress)
	})
	if err != nil || to.engine.renumber == "" {
		return err
	}
	return failed("numbering the trace", target.Exec(to.engine.renumber).Error)
}

var errSame = errors.New("the source and the destination are the same store: name two")

// refuseSame leaves a mark in one store and looks for it in the other, because one database has
// many addresses.
func refuseSame(ctx context.Context, from, to *Store) error {
	mark := counterRow{Name: make([]byte, 32), EndsAt: time.UnixMilli(0)} // the sweep deletes it if we cannot
	_, _ = crand.Read(mark.Name)
	target := to.writer.WithContext(ctx)
	if err := target.Create(&mark).Error; err != nil {
		return failed("writing to the destination", err)
	}
	var seen int64
	err := from.reader.WithContext(ctx).Model(&counterRow{}).Where("name = ?", mark.Name).Count(&seen).Error
	err = errors.Join(failed("reading the source", err),
		failed("writing to the destination", target.Delete(&mark).Error))
	if err == nil && seen > 0 {
		return errSame
	}
	return err
}

// whileLocked runs work while no other process can write to a file. A server goes on.
func (s *Store) whileLocked(ctx context.Context, work func(db *gorm.DB) error) error {
	if s.engine.server {
		return work(s.reader.WithContext(ctx))
	}
	return s.transaction(ctx, work)
}
