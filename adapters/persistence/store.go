// Package persistence is the store of grants: oauth.Store on GORM, in a SQLite file (OpenSQLite) or on a database server that replicas share
// (OpenServer). Store has one method for each operation of the port; package mapper reads and writes rows; engine holds what differs
// between SQLite, PostgreSQL and MySQL. Package sqlite opens the file, package secretfile keeps the server secret beside the database, and package
// maintenance checks and copies whole stores. SCHEMA.md explains the tables.
package persistence

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Store is an oauth.Store in a SQLite file, where one connection writes and a few read, or on a database server, where every connection does both.
// The database enforces every rule; cached grants of a file are used only while the WAL index shows no other commit.
type Store struct {
	engine         engine
	file           *sqlite.Database // nil on a server
	writer, reader *gorm.DB
	secretFile     *secretfile.File
	secrets        atomic.Pointer[cachedSecrets]
	lockTimeout    time.Duration
	counting       slots
}

var (
	_ oauth.Store               = (*Store)(nil)
	_ oauth.AuthorizationLister = (*Store)(nil)
	_ oauth.ClientLister        = (*Store)(nil)
)

// SharedByReplicas reports that several machines may use the database at once.
func (s *Store) SharedByReplicas() bool { return s.engine.server }

// Close closes every connection to the database. A file gets its log written back first.
func (s *Store) Close() error {
	if s.file != nil {
		return s.file.Close()
	}
	return failed("closing the connections", disconnect(s.writer))
}

// Grant implements oauth.Store.
func (s *Store) Grant(ctx context.Context, secret oauth.Digest) (*oauth.AccessGrant, error) {
	found, err := s.found(ctx, secret)
	if err != nil {
		return nil, err
	}
	return found.restore(), nil
}

func (s *Store) found(ctx context.Context, secret oauth.Digest) (*secretWithGrant, error) {
	ctx, done := s.detached(ctx)
	defer done()
	if s.file == nil {
		return s.engine.lookup(s.reader.WithContext(ctx), secret)
	}
	entry, err := s.file.Grants.Lookup(secret, func() (sqlite.CacheEntry, error) { return s.engine.lookup(s.reader.WithContext(ctx), secret) })
	if err != nil {
		return nil, err
	}
	return entry.(*secretWithGrant), nil
}

// lockGrantOfSecret locks the grant before its secret is read: every change of one of its secrets holds the same lock.
const lockGrantOfSecret = "SELECT id FROM grants WHERE id = (SELECT grant_id FROM secrets WHERE digest = ?) FOR UPDATE"

// UpdateGrant implements oauth.Store.
func (s *Store) UpdateGrant(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
	return s.change(ctx, func(tx *sqlite.Tx) error {
		var locked []string
		if s.engine.server {
			if err := tx.Raw(lockGrantOfSecret, secret[:]).Scan(&locked).Error; err != nil {
				return failed("locking a grant", err)
			}
		}
		found, err := s.newest(tx, secret)
		if err != nil {
			return err
		}
		if s.engine.server && len(locked) == 0 { // another transaction has added the grant meanwhile, so that it is not locked
			return failed("locking a grant", errOvertaken)
		}
		grant := found.restore()
		if err := change(grant); err != nil {
			return err
		}
		return update(tx, found, grant)
	})
}

// newest returns the state that a change is applied to. It is mostly cached, because a lookup precedes most changes.
func (s *Store) newest(tx *sqlite.Tx, secret oauth.Digest) (*secretWithGrant, error) {
	if entry, cached := tx.Cached(secret); cached {
		return entry.(*secretWithGrant), nil
	}
	return s.engine.lookup(tx.DB, secret)
}

// UseOnce implements oauth.Store: the primary key accepts one row.
func (s *Store) UseOnce(ctx context.Context, assertion oauth.Digest, forgetAfter time.Time) error {
	row := assertionRow{Digest: assertion[:], ForgetAfter: forgetAfter}
	return s.change(ctx, func(tx *sqlite.Tx) error {
		err := tx.Create(&row).Error
		if err == nil {
			tx.WroteRow()
		}
		return failed("noting a used assertion", err)
	})
}

// update writes the changes to the grant and to the found secret, and the new secrets.
func update(tx *sqlite.Tx, found *secretWithGrant, grant *oauth.AccessGrant) error {
	row, secrets := rowsOf(grant)
	tx.ChangedGrant(row.ID, cacheEntries(&row, secrets))
	if found.grant.HostBox != nil && row.HostBox == nil { // no box is left that a wrap could open (H6)
		if err := tx.Exec("UPDATE secrets SET host_wrap = NULL WHERE grant_id = ? AND host_wrap IS NOT NULL", row.ID).Error; err != nil {
			return failed("emptying wraps", err)
		}
	}
	if err := rewrite(tx, grantTable, found.grant, &row); err != nil {
		return failed("updating a grant", err)
	}
	added := secrets[:0]
	for _, secret := range secrets {
		if !bytes.Equal(secret.Digest, found.secret.Digest) {
			added = append(added, secret)
			continue
		}
		if err := rewrite(tx, secretTable, &found.secret, secret); err != nil {
			return failed("updating a secret", err)
		}
	}
	return addSecrets(tx, added)
}

func addSecrets(tx *sqlite.Tx, secrets []*secretRow) error {
	if len(secrets) == 0 {
		return nil
	}
	return failed("adding secrets", insert(tx, secretTable, secrets...))
}
