// Package persistence is the store of grants: oauth.Store on GORM, in a SQLite file (OpenSQLite) or
// on a database server that replicas share (OpenServer). Store has one method for each operation of
// the port. The rows of codes and grants are read and written in plain SQL (rows.go), all others by
// GORM; engine holds what differs between SQLite, PostgreSQL and MySQL. Package sqlite opens the
// file, and package secretfile keeps the server secret beside the database. SCHEMA.md explains the
// tables.
package persistence

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Store is an oauth.Store in a SQLite file, where one connection writes and a few read, or on a
// database server, where every connection does both.
type Store struct {
	name           string // for people: the file, or the address without its password
	engine         engine
	file           *sqlite.Database // nil on a server
	writer, reader *gorm.DB
	close          func() error
	secretFile     string
	secrets        atomic.Pointer[secretfile.Secrets] // read last
	lockTimeout    time.Duration
	collisions     atomic.Int64
}

var _ oauth.Store = (*Store)(nil)

// SharedByReplicas reports that several machines may use the database at once.
func (s *Store) SharedByReplicas() bool { return s.file == nil }

// Collisions returns how often this process has found that another one was faster with a change.
// The change runs again, at most 16 times in all.
func (s *Store) Collisions() int64 { return s.collisions.Load() }

// Close closes every connection to the database.
func (s *Store) Close() error { return failed("closing the connections", s.close()) }

// UseOnce implements oauth.Store: the primary key accepts one row.
func (s *Store) UseOnce(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	row := assertionRow{Digest: assertion[:], ForgetAfter: forgetAfter}
	return s.change(ctx, func(tx *gorm.DB) error {
		return failed("noting a used assertion", tx.Create(&row).Error)
	})
}

// Ping performs the operations of a request, so that it fails when requests would: it reads the
// server secret, durably writes a row, and finds the newest grant. It reads from the disk, because
// the write before has made SQLite drop its cached pages.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.Secrets(); err != nil {
		return err
	}
	row := assertionRow{Digest: make([]byte, 32), ForgetAfter: time.UnixMilli(0)}
	_, _ = crand.Read(row.Digest)
	err := s.transaction(ctx, func(tx *gorm.DB) error {
		return failed("writing", cmp.Or(tx.Create(&row).Error, tx.Delete(&row).Error))
	})
	if err != nil {
		return err
	}
	ctx, done := s.detached(ctx)
	defer done()
	_, err = grants.read(s.reader.WithContext(ctx), "id > '' ORDER BY id DESC LIMIT 1")
	return failed("reading a grant", err)
}

// Backup writes the SQLite file as it is now to a new file; services may go on meanwhile.
func (s *Store) Backup(ctx context.Context, path string) error {
	if s.file == nil {
		return errors.New("a database server has a tool of its own: run pg_dump for PostgreSQL, or " +
			"mariadb-dump or mysqldump with --single-transaction")
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

// keyedTable is a table with its primary key.
type keyedTable struct{ name, key string }

// expiring are the tables from which DeleteExpired deletes. forget_after has the end of a row.
var expiring = []keyedTable{
	{"authorization_codes", "id"},
	{"grants", "id"},
	{"used_assertions", "digest"},
	{"client_documents", "digest"},
}

const deletedAtOnce = 500 // in one transaction, so that others may write between two

// DeleteExpired implements oauth.Store.
func (s *Store) DeleteExpired(ctx context.Context, now time.Time) (deleted int, err error) {
	for _, from := range expiring {
		for rows := int64(1); rows > 0; deleted += int(rows) {
			err := s.transaction(ctx, func(tx *gorm.DB) error {
				rows = 0
				var keys []any // not every engine limits a DELETE
				found := tx.Table(from.name).Where("forget_after <= ?", now.UnixMilli()).Order("forget_after").
					Limit(deletedAtOnce).Pluck(from.key, &keys)
				if found.Error != nil || len(keys) == 0 {
					return failed("finding expired rows", found.Error)
				}
				done := tx.Exec("DELETE FROM "+from.name+" WHERE forget_after <= ? AND "+from.key+" IN ?",
					now.UnixMilli(), keys)
				rows = done.RowsAffected
				return failed("deleting expired rows", done.Error)
			})
			if err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}
