package persistence

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"time"

	"gorm.io/gorm"
)

// Ping performs the operations of a request, so that it fails when requests would: it reads the
// server secret, durably writes a row, and finds the newest grant. It reads from the disk: the
// write before has made SQLite drop its cached pages.
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

var errNoBackup = errors.New("a database server has a tool of its own: run pg_dump for PostgreSQL, or " +
	"mariadb-dump or mysqldump with --single-transaction")

// Backup writes the SQLite file as it is now to a new file; services may go on meanwhile.
func (s *Store) Backup(ctx context.Context, path string) error {
	if s.file == nil {
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
