package persistence

import (
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
	last := s.secrets.Load()
	secrets, err := secretfile.Read(s.secretFile, last)
	if err != nil {
		return nil, err
	}
	if last != nil && last != secrets {
		ctx, done := s.detached(context.Background())
		defer done()
		if err := s.compareSecret(s.reader.WithContext(ctx)); err != nil {
			return nil, fmt.Errorf("reading the server secrets: %w: %w", oauth.ErrUnavailable, err)
		}
	}
	s.secrets.Store(secrets)
	return secrets.Bytes, nil
}

// KeptSecrets returns the server secret, followed by those that it replaced.
func (s *Store) KeptSecrets() ([]secretfile.Secret, error) {
	secrets, err := secretfile.Read(s.secretFile, nil)
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
		err := s.compareSecret(tx)
		switch forgetsAll := forget.Equal(now); { // every earlier secret, even one that cannot be read
		case forgetsAll && errors.Is(err, fs.ErrNotExist):
			err = secretfile.Create(s.secretFile)
		case err == nil || forgetsAll && errors.Is(err, oauth.ErrOtherSecret):
			err = secretfile.Replace(s.secretFile, now, forget)
		}
		if err == nil {
			err = failed("forgetting the fingerprint of the server secret", tx.Exec("DELETE FROM secret_witness").Error)
		}
		if err != nil || s.file == nil { // on a server, the first replica with the new file stores its fingerprint
			return err
		}
		secrets, err := secretfile.Read(s.secretFile, nil)
		if err != nil {
			return err
		}
		return storeFingerprint(tx, unused, secrets.Fingerprints[0])
	})
}

// compareSecret refuses a secret file without the secret that the database was used with.
func (s *Store) compareSecret(db *gorm.DB) error {
	known, err := fingerprint(db) // before the file, which a replacement changes first
	if err != nil {
		return err
	}
	secrets, err := secretfile.Read(s.secretFile, nil)
	if err == nil && known != unused && !slices.Contains(secrets.Fingerprints, known) {
		err = fmt.Errorf("%w than %s: restore the file that was backed up with the database, or copy it from another "+
			"replica and name it with server-secret", oauth.ErrOtherSecret, s.secretFile)
	}
	return err
}

// createSecret generates the secret of a database that was not used with one. Later replicas must
// be given the same file. createSecret ignores that the secret of a used database is missing,
// because a host may have configured another one; a service that needs the secret fails.
func (s *Store) createSecret() error {
	err := secretfile.Protect(s.secretFile, s.file == nil)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known, err := fingerprint(s.reader)
	if err != nil || known != unused {
		return err
	}
	return secretfile.Create(s.secretFile)
}

// VerifySecret implements oauth.SecretVerifier.
func (s *Store) VerifySecret(ctx context.Context, prints []oauth.Fingerprint) error {
	ctx, done := s.detached(ctx)
	defer done()
	if known, err := fingerprint(s.reader.WithContext(ctx)); err != nil || known == prints[0] {
		return err
	}
	return s.change(ctx, func(db *gorm.DB) error {
		known, err := fingerprint(db)
		switch {
		case err != nil || known == prints[0]:
			return err
		case known != unused && !slices.Contains(prints, known):
			return oauth.ErrOtherSecret
		}
		return storeFingerprint(db, known, prints[0])
	})
}

// unused is the fingerprint of a database that no service has used yet.
var unused oauth.Fingerprint

// fingerprint returns that of the newest server secret that a process has sealed with.
func fingerprint(db *gorm.DB) (known oauth.Fingerprint, err error) {
	var prints [][]byte
	err = db.Table("secret_witness").Pluck("print", &prints).Error
	for _, print := range prints {
		copy(known[:], print)
	}
	return known, failed("reading the fingerprint of the server secret", err)
}

// storeFingerprint replaces the known fingerprint, unless another process was faster.
func storeFingerprint(db *gorm.DB, known, next oauth.Fingerprint) error {
	const doing = "storing the fingerprint of the server secret"
	if known == unused {
		return overtaken(db.Exec("INSERT INTO secret_witness (id, print) VALUES (1, ?)", next[:]).Error, doing)
	}
	done := db.Exec("UPDATE secret_witness SET print = ? WHERE print = ?", next[:], known[:])
	if done.Error == nil && done.RowsAffected == 0 {
		return errOvertaken
	}
	return failed(doing, done.Error)
}
