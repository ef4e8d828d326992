package persistence

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/maintenance"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// tables are the tables that are copied, in the order in which they refer to each other. Counters
// and the fingerprint of the server secret concern the running service only.
var tables = []maintenance.Table{
	{Name: "authorization_codes", Key: "id"},
	{Name: "grants", Key: "id"},
	{Name: "used_assertions", Key: "digest"},
	{Name: "trace_steps", Key: "number"},
	{Name: "client_documents", Key: "digest"},
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
	return g.HasKnownState() && oauth.RestoreToolPins(g.Tools).IsReadable() && reflect.DeepEqual(back, g)
}

// isReadableDocument reports that the row is a document under the digest of its URL.
func isReadableDocument(r clientDocumentRow) bool {
	back := newClientDocumentRow(r.restore())
	back.ForgetAfter = r.ForgetAfter
	return reflect.DeepEqual(back, r)
}

var errUnreadable = errors.New(
	"this version cannot read it: restore the database from a backup, or use the version that has written it")

// checkRows reads every row of a table as a service would, page by page.
func checkRows[R any](name string, page func(last *R) ([]R, error), key func(R) string,
	isReadable func(R) bool) maintenance.Check {
	read, last := 0, (*R)(nil)
	for {
		rows, err := page(last)
		if err != nil {
			return maintenance.NewCheck(name, "",
				fmt.Errorf("a row behind the first %d: %w: %w", read, err, errUnreadable))
		}
		if len(rows) == 0 {
			return maintenance.NewCheck(name, fmt.Sprintf("rows: %d, all readable", read), nil)
		}
		for _, row := range rows {
			if !isReadable(row) {
				return maintenance.NewCheck(name, "", fmt.Errorf("the row %s: %w", key(row), errUnreadable))
			}
			read++
		}
		last = &rows[len(rows)-1]
	}
}

const checkedAtOnce = 200

// checkPlain is checkRows for a table in plain SQL.
func checkPlain[R any](db *gorm.DB, name string, of table[R], isReadable func(R) bool) maintenance.Check {
	id := func(row R) string { return *of.fields(&row)[0].(*string) }
	return checkRows(name, func(last *R) ([]R, error) {
		after := ""
		if last != nil {
			after = id(*last)
		}
		return of.read(db, "id > ? ORDER BY id LIMIT ?", after, checkedAtOnce)
	}, id, isReadable)
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
	return append(checks,
		checkPlain(db, "authorization_codes", codes, isReadableCode),
		checkPlain(db, "grants", grants, isReadableGrant),
		checkDocuments(db),
		countRows(db, "used_assertions"),
		countRows(db, "trace_steps"))
}

func (s *Store) checkSecret(db *gorm.DB) maintenance.Check {
	used, err := s.compareSecret(db)
	if !used {
		return maintenance.NewCheck("server secret", "no service has used one with this database yet", err)
	}
	return maintenance.NewCheck("server secret", "it is the one that the database was used with", err)
}

// checkDocuments reads the documents at once, of which there are few.
func checkDocuments(db *gorm.DB) maintenance.Check {
	return checkRows("client_documents", func(last *clientDocumentRow) (rows []clientDocumentRow, err error) {
		if last == nil {
			err = db.Order("digest").Find(&rows).Error
		}
		return rows, err
	}, func(r clientDocumentRow) string { return fmt.Sprintf("%x", r.Digest) }, isReadableDocument)
}

func countRows(db *gorm.DB, table string) maintenance.Check {
	var rows int64
	err := db.Table(table).Count(&rows).Error
	return maintenance.NewCheck(table, fmt.Sprintf("rows: %d", rows), failed("counting the rows", err))
}

// Ping performs the operations of a request, so that it fails when requests would: it reads the
// server secret, durably writes a row, and finds the newest grant. It reads from the disk: the
// write before has made SQLite drop its cached pages.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.KeptSecrets(); err != nil {
		return err
	}
	row := newMark()
	err := s.transaction(ctx, func(tx *gorm.DB) error {
		return failed("writing", cmp.Or(tx.Create(&row).Error, tx.Delete(&row).Error))
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
	if _, err = grants.find(db, newest[0]); errors.Is(err, gorm.ErrRecordNotFound) { // deleted meanwhile
		return nil
	}
	return failed("reading a grant", err)
}

var errNoBackup = errors.New("a database server has a tool of its own: run pg_dump for PostgreSQL, or " +
	"mariadb-dump or mysqldump with --single-transaction")

// Backup writes the SQLite file as it is now to a new file; services may go on meanwhile.
func (s *Store) Backup(ctx context.Context, path string) error {
	if s.engine.server {
		return errNoBackup
	}
	path, err := filepath.Abs(path) // so that no name has a special meaning to SQLite
	if err != nil {
		return err
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
	mark := newMark()
	target := to.writer.WithContext(ctx)
	if err := target.Create(&mark).Error; err != nil {
		return failed("writing to the destination", err)
	}
	var seen int64
	err := from.reader.WithContext(ctx).Model(&assertionRow{}).Where("digest = ?", mark.Digest).Count(&seen).Error
	err = errors.Join(failed("reading the source", err),
		failed("writing to the destination", target.Delete(&mark).Error))
	if err == nil && seen > 0 {
		return errSame
	}
	return err
}

// newMark returns a row of no assertion, which the sweep deletes.
func newMark() assertionRow {
	mark := assertionRow{Digest: make([]byte, 32), ForgetAfter: time.UnixMilli(0)}
	_, _ = crand.Read(mark.Digest)
	return mark
}

// whileLocked runs work while no other process can write to a file. A server goes on.
func (s *Store) whileLocked(ctx context.Context, work func(db *gorm.DB) error) error {
	if s.engine.server {
		return work(s.reader.WithContext(ctx))
	}
	return s.transaction(ctx, work)
}
