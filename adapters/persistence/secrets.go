package persistence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
)

var (
	_ oauth.SecretKeeper   = (*Store)(nil)
	_ oauth.SecretVerifier = (*Store)(nil)
)

// Secrets implements oauth.SecretKeeper. It looks at the file each time, because another process
// may have replaced the secret and sealed with the new one already.
func (s *Store) Secrets() ([][]byte, error) {
	secrets, err := s.readSecrets()
	if err != nil {
		return nil, err
	}
	return secrets.Bytes, nil
}

// KeptSecrets returns the server secret, followed by those that it replaced.
func (s *Store) KeptSecrets() ([]secretfile.Secret, error) {
	secrets, err := s.readSecrets()
	if err != nil {
		return nil, err
	}
	return slices.Clone(secrets.All), nil
}

// readSecrets refuses a file that has been replaced by one without the secret that the database is
// used with, so that nothing is issued under another.
func (s *Store) readSecrets() (*secretfile.Secrets, error) {
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
	return secrets, nil
}

// ReplaceSecret generates a new server secret and keeps the earlier ones, except those that were
// replaced at the time forget or before it. Processes that use the store seal with the new secret
// from their next use. A secret that is lost, or not the store's, can only be forgotten.
func (s *Store) ReplaceSecret(ctx context.Context, now, forget time.Time) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		if err := s.replaceSecretFile(tx, now, forget); err != nil {
			return err
		}
		if s.engine.server { // the first replica that is given the new secret stores its fingerprint
			return failed("forgetting the server secret of other replicas",
				tx.Delete(&fingerprintRow{}, onlyFingerprint).Error)
		}
		prints, err := s.fingerprintsOfFile()
		if err != nil {
			return err
		}
		return failed("storing the fingerprint of the server secret",
			tx.Save(&fingerprintRow{onlyFingerprint, prints[0][:]}).Error)
	})
}

func (s *Store) replaceSecretFile(tx *gorm.DB, now, forget time.Time) error {
	_, err := s.secretFile.Read()
	forgetsAll := forget.Equal(now)
	switch {
	case forgetsAll && errors.Is(err, fs.ErrNotExist):
		return s.secretFile.Create()
	case !forgetsAll && err == nil:
		_, err = s.compareSecret(tx)
	}
	if err != nil {
		return err
	}
	return s.secretFile.Replace(now, forget)
}

// compareSecret refuses a secret file other than the one that the database was used with. It
// reports whether one was used.
func (s *Store) compareSecret(db *gorm.DB) (used bool, err error) {
	known, err := fingerprints(db) // before the file, which a replacement changes first
	if err == nil {
		err = s.compareFile(known)
	}
	isOther := errors.Is(err, oauth.ErrOtherSecret)
	switch {
	case s.engine.server && (isOther || errors.Is(err, fs.ErrNotExist)):
		err = fmt.Errorf("%w: name the file that the replicas have with server-secret", err)
	case isOther:
		err = fmt.Errorf("%w than %s: restore the file that was backed up with the database", err, s.secretFile.Path())
	}
	return len(known) > 0, err
}

// compareFile returns oauth.ErrOtherSecret if the file is without the secret of the database.
func (s *Store) compareFile(known []fingerprintRow) error {
	prints, err := s.fingerprintsOfFile()
	if err == nil && len(known) > 0 && !known[0].isAmong(prints) {
		return oauth.ErrOtherSecret
	}
	return err
}

// fingerprintsOfFile returns the fingerprints of the secrets in the file, the newest first.
func (s *Store) fingerprintsOfFile() ([]oauth.Fingerprint, error) {
	secrets, err := s.secretFile.Read()
	if err != nil {
		return nil, err
	}
	return seal.NewKeyRing(seal.FixedSecrets(secrets.Bytes)).SecretFingerprints()
}

// createSecret generates the secret of a database that was not used with one. Later replicas must
// be given the same file. Where the secret is missing, the service fails that needs it; a host may
// have configured another one.
func (s *Store) createSecret(tx *gorm.DB) error {
	_, err := os.Stat(s.secretFile.Path())
	exists := !errors.Is(err, fs.ErrNotExist)
	if exists && s.engine.server {
		return errors.Join(err, s.secretFile.ProtectShared())
	}
	known, err := fingerprints(tx)
	if err != nil || !exists && len(known) > 0 {
		return err
	}
	return s.secretFile.Create()
}

// fingerprintRow is the fingerprint of the newest server secret that a process has sealed
// with. The table has one row.
type fingerprintRow struct {
	ID    int `gorm:"primaryKey;autoIncrement:false"`
	Print []byte
}

// TableName implements GORM's Tabler.
func (fingerprintRow) TableName() string { return "secret_witness" }

const onlyFingerprint = 1

// VerifySecret implements oauth.SecretVerifier.
func (s *Store) VerifySecret(ctx context.Context, prints []oauth.Fingerprint) error {
	if len(prints) == 0 {
		return nil
	}
	ctx, done := s.detached(ctx)
	defer done()
	if known, err := fingerprints(s.reader.WithContext(ctx)); err != nil || len(known) > 0 &&
		bytes.Equal(known[0].Print, prints[0][:]) {
		return err
	}
	return s.transaction(ctx, func(tx *gorm.DB) error {
		known, err := fingerprints(s.engine.locking(tx))
		newest := fingerprintRow{onlyFingerprint, prints[0][:]}
		switch {
		case err != nil:
			return err
		case len(known) == 0:
			return overtaken(tx.Create(&newest).Error, "storing the fingerprint of the server secret")
		case bytes.Equal(known[0].Print, newest.Print):
			return nil
		case !known[0].isAmong(prints):
			return oauth.ErrOtherSecret
		}
		return failed("storing the fingerprint of the server secret", tx.Save(&newest).Error)
	})
}

// fingerprints returns one row, or none before the first service has started.
func fingerprints(db *gorm.DB) (known []fingerprintRow, err error) {
	err = db.Find(&known).Error
	return known, failed("reading the fingerprint of the server secret", err)
}

func (f fingerprintRow) isAmong(prints []oauth.Fingerprint) bool {
	return slices.ContainsFunc(prints, func(own oauth.Fingerprint) bool { return bytes.Equal(own[:], f.Print) })
}
