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
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

var (
	_ oauth.SecretKeeper   = (*Store)(nil)
	_ oauth.SecretVerifier = (*Store)(nil)
)

// cachedSecrets are the secrets in the file, and the state of the database before they were read.
type cachedSecrets struct {
	*secretfile.Secrets
	read databaseState
}

// databaseState is the version of a SQLite file. A server has no known version.
type databaseState struct {
	known   bool
	version sqlite.Version
	at      time.Duration // since start
}

func (s *Store) databaseState() databaseState {
	now := databaseState{at: time.Since(start)}
	if s.file != nil {
		version, err := s.file.Grants.Version()
		now.version, now.known = version, err == nil
	}
	return now
}

// isCurrent reports that no transaction has committed since the state was read, and that this was less than secretsTrusted ago.
func (d databaseState) isCurrent(now databaseState) bool {
	return d.known && now.known && d.version == now.version && now.at-d.at < secretsTrusted
}

var start = time.Now()

// secretsTrusted bounds the time in which a secret file that an operator has replaced goes undetected, because that commits nothing.
const secretsTrusted = 10 * time.Millisecond

// Secrets implements oauth.SecretKeeper. A process that replaces a secret, or stores data sealed with the new one, commits to the database. So the
// cached secrets are current until the next commit.
func (s *Store) Secrets() ([][]byte, error) {
	now := s.databaseState()
	if cached := s.secrets.Load(); cached != nil && cached.read.isCurrent(now) {
		return cached.Bytes, nil
	}
	secrets, err := s.readSecrets(now)
	if err != nil {
		return nil, err
	}
	return secrets.Bytes, nil
}

// KeptSecrets returns the server secret, followed by those that it replaced.
func (s *Store) KeptSecrets() ([]secretfile.Secret, error) {
	secrets, err := s.readSecrets(s.databaseState())
	if err != nil {
		return nil, err
	}
	return slices.Clone(secrets.All), nil
}

// readSecrets expects the state of the database from before the file is read, so that a commit between the two makes the next caller read again.
func (s *Store) readSecrets(before databaseState) (*cachedSecrets, error) {
	secrets, err := s.secretFile.Read()
	if err != nil {
		return nil, err
	}
	cached := &cachedSecrets{secrets, before}
	s.secrets.Store(cached)
	return cached, nil
}

// ReplaceSecret generates a new server secret and keeps the earlier ones, except those that were replaced at the time forget or before it. Processes
// that use the store seal with the new secret from their next use.
func (s *Store) ReplaceSecret(ctx context.Context, now, forget time.Time) error {
	return s.transaction(ctx, func(tx *gorm.DB) error {
		_, err := s.secretFile.Read()
		if errors.Is(err, fs.ErrNotExist) && s.engine.server && forget.Equal(now) { // the operator has lost the file
			return errors.Join(forgetFingerprint(tx), s.secretFile.Create())
		}
		if err != nil {
			return err
		}
		if err := s.announceSecret(tx); err != nil {
			return err
		}
		return s.secretFile.Replace(now, forget)
	})
}

// announceSecret commits before other processes use the new secret. On a server it makes room for the new fingerprint, and in a file the commit
// makes other processes read the secrets again.
func (s *Store) announceSecret(tx *gorm.DB) error {
	if s.engine.server {
		return forgetFingerprint(tx)
	}
	passing := fingerprintRow{onlyFingerprint + 1, []byte{0}}
	return failed("announcing the server secret", errors.Join(tx.Create(&passing).Error, tx.Delete(&passing).Error))
}

// markSecretUsed marks the secret when a database has been begun with it. The write lock keeps others from replacing the secret meanwhile.
func (s *Store) markSecretUsed() error {
	if used, err := s.secretFile.IsUsed(); used || err != nil {
		return err
	}
	return s.transaction(context.Background(), func(*gorm.DB) error { return s.secretFile.MarkUsed() })
}

// createSharedSecret generates a secret for the first replica. Later replicas must be given the same file.
func (s *Store) createSharedSecret(tx *gorm.DB) error {
	if _, err := os.Stat(s.secretFile.Path()); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, s.secretFile.ProtectShared())
	}
	known, err := fingerprints(tx)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		return fmt.Errorf("%s is missing, and the database was used with a server secret: copy the file from another replica, or restore it; "+
			"if it is lost, \"pasteport keys rotate --forget-old\" generates another one, and clients connect again", s.secretFile.Path())
	}
	return s.secretFile.Create()
}

// fingerprintRow is the fingerprint of the newest server secret that a replica has sealed with. The table has one row.
type fingerprintRow struct {
	ID    int `gorm:"primaryKey;autoIncrement:false"`
	Print []byte
}

// TableName implements GORM's Tabler.
func (fingerprintRow) TableName() string { return "secret_witness" }

const onlyFingerprint = 1

// VerifySecret implements oauth.SecretVerifier. A file has its secret beside it, so that no other process can use another one.
func (s *Store) VerifySecret(ctx context.Context, prints []oauth.Fingerprint) error {
	if !s.engine.server || len(prints) == 0 {
		return nil
	}
	return s.transaction(ctx, func(tx *gorm.DB) error {
		known, err := fingerprints(s.engine.locking(tx))
		if err != nil {
			return err
		}
		newest := fingerprintRow{onlyFingerprint, prints[0][:]}
		if len(known) == 0 {
			return overtaken(tx.Create(&newest).Error, "noting the server secret")
		}
		switch {
		case !known[0].isAmong(prints):
			return oauth.ErrOtherSecret
		case bytes.Equal(known[0].Print, newest.Print):
			return nil
		}
		return failed("noting the server secret", tx.Save(&newest).Error)
	})
}

// fingerprints returns one row, or none before the first replica has started.
func fingerprints(db *gorm.DB) (known []fingerprintRow, err error) {
	err = db.Find(&known).Error
	return known, failed("reading which server secret other replicas use", err)
}

func (f fingerprintRow) isAmong(prints []oauth.Fingerprint) bool {
	return slices.ContainsFunc(prints, func(own oauth.Fingerprint) bool { return bytes.Equal(own[:], f.Print) })
}

// forgetFingerprint lets the next replica that starts bring any secret.
func forgetFingerprint(tx *gorm.DB) error {
	return failed("forgetting the server secret of other replicas", tx.Delete(&fingerprintRow{}, onlyFingerprint).Error)
}
