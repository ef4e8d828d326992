package persistence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	codes "modernc.org/sqlite/lib"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Store is an oauth.Store in a SQLite file: one connection writes, a few read. Every guard is in the database.
type Store struct {
	writer, reader *gorm.DB
	secretFile     string
	patience       time.Duration
}

var _ oauth.Store = (*Store)(nil)

// Close writes the log back into the database file and lets go of it.
func (s *Store) Close() error {
	return errors.Join(
		failed("closing the readers", disconnect(s.reader)),
		failed("writing the log back", s.writer.Exec("PRAGMA wal_checkpoint(TRUNCATE)").Error),
		failed("closing the writer", disconnect(s.writer)),
	)
}

// AddGrant implements oauth.Store.
func (s *Store) AddGrant(ctx context.Context, grant *oauth.AccessGrant, supersede func(earlier *oauth.AccessGrant) error) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		if err := clearWay(tx, grant.ID(), supersede); err != nil {
			return err
		}
		row, secrets := rowsOf(grant)
		if err := tx.Create(&row).Error; err != nil {
			return failed("adding a grant", err)
		}
		return addSecrets(tx, secrets)
	})
}

// clearWay deletes the earlier grant of the same id, and with it its secrets, when supersede agrees.
func clearWay(tx *gorm.DB, id string, supersede func(earlier *oauth.AccessGrant) error) error {
	var earlier grantRow
	err := tx.Take(&earlier, "id = ?", id).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return nil
	}
	if err != nil {
		return failed("looking for an earlier grant", err)
	}
	if err := supersede(earlier.restore()); err != nil {
		return err
	}
	return failed("replacing a grant", tx.Delete(&earlier).Error)
}

// Grant implements oauth.Store.
func (s *Store) Grant(ctx context.Context, secret oauth.Digest) (*oauth.AccessGrant, error) {
	found, err := find(s.reader.WithContext(ctx), secret)
	if err != nil {
		return nil, err
	}
	return found.restore(), nil
}

// UpdateGrant implements oauth.Store.
func (s *Store) UpdateGrant(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		found, err := find(tx, secret)
		if err != nil {
			return err
		}
		return update(tx, found, found.restore(), change)
	})
}

// GrantsOf implements oauth.Store.
func (s *Store) GrantsOf(ctx context.Context, host oauth.Fingerprint) ([]*oauth.AccessGrant, error) {
	rows, err := grantsOf(s.reader.WithContext(ctx), host)
	grants := make([]*oauth.AccessGrant, 0, len(rows))
	for _, row := range rows {
		grants = append(grants, row.restore())
	}
	return grants, err
}

// UpdateGrantsOf implements oauth.Store.
func (s *Store) UpdateGrantsOf(ctx context.Context, host oauth.Fingerprint, change func(*oauth.AccessGrant) error) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		rows, err := grantsOf(tx, host)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := update(tx, foundRow{Grant: row}, row.restore(), change); err != nil {
				return err
			}
		}
		return nil
	})
}

// UseOnce implements oauth.Store: the primary key lets one in.
func (s *Store) UseOnce(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	row := assertionRow{Digest: assertion[:], ForgetAfter: forgetAfter}
	return failed("noting a used assertion", s.writer.WithContext(ctx).Create(&row).Error)
}

// The secrets of a grant go before it does, so that no batch is longer than 500 rows.
const (
	deleteSecrets = `DELETE FROM secrets WHERE digest IN (SELECT digest FROM secrets WHERE forget_after <= @now
		UNION ALL SELECT digest FROM grants JOIN secrets ON grant_id = id WHERE grants.forget_after <= @now LIMIT 500)`
	deleteGrants     = `DELETE FROM grants WHERE id IN (SELECT id FROM grants WHERE forget_after <= @now LIMIT 500)`
	deleteAssertions = `DELETE FROM used_assertions WHERE digest IN (SELECT digest FROM used_assertions WHERE forget_after <= @now LIMIT 500)`
)

// emptySuccessors takes away what nobody may open any more (J9).
const emptySuccessors = `UPDATE grants SET successor_box = NULL WHERE id IN (SELECT id FROM grants
	WHERE successor_box IS NOT NULL AND grace_end <= @now LIMIT 500)`

// DeleteExpired implements oauth.Store. Between two batches others may write.
func (s *Store) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	deleted := 0
	for _, statement := range []string{deleteSecrets, deleteGrants, deleteAssertions} {
		gone, err := s.inBatches(ctx, statement, now)
		deleted += gone
		if err != nil {
			return deleted, err
		}
	}
	_, err := s.inBatches(ctx, emptySuccessors, now)
	return deleted, err
}

// inBatches repeats a statement about what has expired until there is nothing left for it, and returns how many rows it found.
func (s *Store) inBatches(ctx context.Context, statement string, now time.Time) (found int, err error) {
	for affected := int64(1); affected > 0; {
		batch := s.writer.WithContext(ctx).Exec(statement, sql.Named("now", now.UnixMilli()))
		if batch.Error != nil {
			return found, failed("forgetting what has expired", batch.Error)
		}
		affected = batch.RowsAffected
		found += int(affected)
	}
	return found, nil
}

func find(db *gorm.DB, secret oauth.Digest) (found foundRow, err error) {
	err = db.Raw(findGrant, secret[:]).Take(&found).Error
	return found, failed("finding a grant", err)
}

func grantsOf(db *gorm.DB, host oauth.Fingerprint) (rows []grantRow, err error) {
	err = db.Order("created_at, id").Find(&rows, "host_print = ?", host[:]).Error
	return rows, failed("finding the grants of a host token", err)
}

// update lets change happen to the restored grant and writes what came of it: the grant and the secret that was found if they
// have changed, and new ones.
func update(tx *gorm.DB, found foundRow, grant *oauth.AccessGrant, change func(*oauth.AccessGrant) error) error {
	if err := change(grant); err != nil {
		return err
	}
	row, secrets := rowsOf(grant)
	if found.Grant.HostBox != nil && row.HostBox == nil { // then nothing is left that a wrap could open (H6)
		if err := tx.Exec("UPDATE secrets SET host_wrap = NULL WHERE grant_id = ? AND host_wrap IS NOT NULL", row.ID).Error; err != nil {
			return failed("emptying wraps", err)
		}
	}
	if !reflect.DeepEqual(row, found.Grant) {
		if err := tx.Select("*").Updates(&row).Error; err != nil { // GORM skips zero values unless it is told otherwise
			return failed("updating a grant", err)
		}
	}
	var added []secretRow
	for _, secret := range secrets {
		switch {
		case !bytes.Equal(secret.Digest, found.Secret.Digest):
			added = append(added, secret)
		case !reflect.DeepEqual(secret, found.Secret):
			if err := tx.Select("*").Updates(&secret).Error; err != nil {
				return failed("updating a secret", err)
			}
		}
	}
	return addSecrets(tx, added)
}

func addSecrets(tx *gorm.DB, secrets []secretRow) error {
	if len(secrets) == 0 {
		return nil
	}
	return failed("adding secrets", tx.Create(&secrets).Error)
}

// transaction holds the write lock while work runs. However many wait for it, nobody waits longer than the store's patience.
// GORM's own keeps silent about a rollback that fails.
func (s *Store) transaction(ctx context.Context, work func(tx *gorm.DB) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting := time.AfterFunc(s.patience, cancel)
	tx := s.writer.WithContext(ctx).Begin()
	waiting.Stop()
	if tx.Error != nil {
		return failed("beginning a transaction", tx.Error)
	}
	finished := false
	defer func() {
		if !finished { // work panics; the only write connection has to come back
			tx.Rollback()
		}
	}()
	err := work(tx)
	finished = true
	if err == nil {
		return failed("committing", tx.Commit().Error)
	}
	undone := tx.Rollback().Error
	if undone == nil || errors.Is(undone, sql.ErrTxDone) { // done: the context has ended and taken everything back
		return err
	}
	return errors.Join(err, failed("rolling back", undone))
}

// failed says what was being done, in the words of the port where it has some.
func failed(doing string, err error) error {
	code := sqliteCode(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gorm.ErrRecordNotFound):
		err = oauth.ErrNotFound
	case code == codes.SQLITE_CONSTRAINT_PRIMARYKEY, code == codes.SQLITE_CONSTRAINT_UNIQUE:
		err = oauth.ErrDuplicate
	default:
		err = fmt.Errorf("%w: %w", oauth.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
