package persistence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
	"github.com/pasteport/pasteport/domain/oauth"
)

var (
	_ oauth.SecretKeeper   = (*Store)(nil)
	_ oauth.SecretVerifier = (*Store)(nil)
)

// Secrets implements oauth.SecretKeeper. It looks at the file each time, because another process
// may have replaced the secret and sealed with the new one already. It refuses a file that has been
// replaced by one without the secret that the database is used with, so that nothing is issued
// under another.
func (s *Store) Secrets() ([][]byte, error) {
	secrets, err := s.secretFile.Read()
	if err != nil {
		return nil, err
	}
	if last := s.secrets.Load(); last != nil && last != secrets {
		ctx, done := s.detached(context.Background())
		defer done()
		if _, err := s.compareSecret(s.reader.WithContext(ctx)); err != nil {
			return nil, fmt.Errorf("reading the server secrets: %w: %w", oauth.ErrUnavailable, err)
		}
	}
	s.secrets.Store(secrets)
	return secrets.Bytes, nil
}

// KeptSecrets returns the server secret, followed by those that it replaced.
func (s *Store) KeptSecrets() ([]secretfile.Secret, error) {
	secrets, err := s.secretFile.Read()
	if err != nil {
		return nil, err
	}
	return secrets.All, nil
}

// ReplaceSecret generates a new server secret and keeps the earlier ones, except those that were
// replaced at the time forget or before it. Processes that use the store seal with the new secret
// from their next use. A secret that is lost, or not the store's, can only be forgotten.
func (s *Store) ReplaceSecret(ctx context.Context, now, forget time.Time) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		_, err := s.compareSecret(tx)
		switch forgetsAll := forget.Equal(now); {
		case forgetsAll && errors.Is(err, fs.ErrNotExist):
			err = s.secretFile.Create()
		case err == nil || forgetsAll && errors.Is(err, oauth.ErrOtherSecret):
			err = s.secretFile.Replace(now, forget)
		}
		if err == nil {
			err = failed(storingFingerprint, tx.Delete(&fingerprintRow{}, onlyFingerprint).Error)
		}
		if err != nil || s.engine.server { // the first replica that is given the new secret stores its fingerprint
			return err
		}
		secrets, err := s.secretFile.Read()
		if err != nil {
			return err
		}
		newest := secrets.Fingerprints[0]
		return failed(storingFingerprint, tx.Create(&fingerprintRow{onlyFingerprint, newest[:]}).Error)
	})
}

// compareSecret refuses a secret file without the secret that the database was used with. It
// reports whether one was used.
func (s *Store) compareSecret(db *gorm.DB) (used bool, err error) {
	known, err := fingerprint(db) // before the file, which a replacement changes first
	if err != nil {
		return false, err
	}
	secrets, err := s.secretFile.Read()
	if err == nil && known != nil && !slices.Contains(secrets.Fingerprints, *known) {
		err = fmt.Errorf("%w than %s: restore the file that was backed up with the database, or copy it from another "+
			"replica and name it with server-secret", oauth.ErrOtherSecret, s.secretFile.Path())
	}
	return known != nil, err
}

// createSecret generates the secret of a database that was not used with one. Later replicas must
// be given the same file. Where the secret is missing, the service fails that needs it; a host may
// have configured another one.
func (s *Store) createSecret() error {
	err := secretfile.Protect(s.secretFile.Path(), s.engine.server)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known, err := fingerprint(s.reader)
	if err != nil || known != nil {
		return err
	}
	return s.secretFile.Create()
}

// VerifySecret implements oauth.SecretVerifier.
func (s *Store) VerifySecret(ctx context.Context, prints []oauth.Fingerprint) error {
	if len(prints) == 0 {
		return nil
	}
	ctx, done := s.detached(ctx)
	defer done()
	if known, err := fingerprint(s.reader.WithContext(ctx)); err != nil || known != nil && *known == prints[0] {
		return err
	}
	return s.transaction(ctx, func(tx *gorm.DB) error {
		known, err := fingerprint(tx)
		switch {
		case err != nil || known != nil && *known == prints[0]:
			return err
		case known != nil && !slices.Contains(prints, *known):
			return oauth.ErrOtherSecret
		case known != nil:
			forgotten := tx.Delete(&fingerprintRow{}, "print = ?", known[:])
			if forgotten.Error != nil || forgotten.RowsAffected == 0 {
				return cmp.Or(failed(storingFingerprint, forgotten.Error), errOvertaken)
			}
		}
		return overtaken(tx.Create(&fingerprintRow{onlyFingerprint, prints[0][:]}).Error, storingFingerprint)
	})
}

// fingerprintRow is the fingerprint of the newest server secret that a process has sealed with. The
// table has one row, or none before the first service has started.
type fingerprintRow struct {
	ID    int `gorm:"primaryKey;autoIncrement:false"`
	Print []byte
}

// TableName implements GORM's Tabler.
func (fingerprintRow) TableName() string { return "secret_witness" }

const (
	onlyFingerprint    = 1
	storingFingerprint = "storing the fingerprint of the server secret"
)

func fingerprint(db *gorm.DB) (*oauth.Fingerprint, error) {
	var rows []fingerprintRow
	if err := db.Find(&rows).Error; err != nil || len(rows) == 0 {
		return nil, failed("reading the fingerprint of the server secret", err)
	}
	var known oauth.Fingerprint
	copy(known[:], rows[0].Print)
	return &known, nil
}
