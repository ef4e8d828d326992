// Package persistence is the store of grants: oauth.Store on GORM, in a SQLite file (OpenSQLite) or
// on a database server that replicas share (OpenServer). Store has one method for each operation of
// the port; package mapper reads and writes rows; engine holds what differs between SQLite,
// PostgreSQL and MySQL. Package sqlite opens the file, package secretfile keeps the server secret
// beside the database, and package maintenance checks and copies whole stores. SCHEMA.md explains
// the tables.
package persistence

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence/internal/mapper"
	"github.com/pasteport/pasteport/adapters/persistence/secretfile"
	"github.com/pasteport/pasteport/adapters/persistence/sqlite"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Store is an oauth.Store in a SQLite file, where one connection writes and a few read, or on a
// database server, where every connection does both. The database enforces every rule; cached
// grants of a file are used only while the WAL index shows no other commit.
type Store struct {
	engine         engine
	file           *sqlite.Database // nil on a server
	writer, reader *gorm.DB
	secretFile     *secretfile.File
	secrets        atomic.Pointer[cachedSecrets]
	lockTimeout    time.Duration
	recentCodes    recent[stored[codeRow]]
	recentGrants   recent[*storedGrant]
	counting       *semaphore.Weighted
	collisions     atomic.Int64
}

var _ oauth.Store = (*Store)(nil)

// SharedByReplicas reports that several machines may use the database at once.
func (s *Store) SharedByReplicas() bool { return s.engine.server }

// Collisions returns how often this process has found that another one was faster with a change.
// The change runs again, at most 16 times.
func (s *Store) Collisions() int64 { return s.collisions.Load() }

// Close closes every connection to the database. A file gets its log written back first.
func (s *Store) Close() error {
	if s.file != nil {
		return s.file.Close()
	}
	return failed("closing the connections", disconnect(s.writer))
}

// Grant implements oauth.Store.
func (s *Store) Grant(ctx context.Context, id string) (*oauth.AccessGrant, error) {
	ctx, done := s.detached(ctx)
	defer done()
	read := func() (sqlite.CacheEntry, error) { return s.engine.grant(s.reader.WithContext(ctx), id) }
	if s.file != nil {
		lookup := read
		read = func() (sqlite.CacheEntry, error) { return s.file.Grants.Lookup(id, lookup) }
	}
	found, err := read()
	if err != nil {
		return nil, err
	}
	s.recentGrants.add(id, found.(*storedGrant))
	return found.(*storedGrant).restore(), nil
}

// UpdateGrant implements oauth.Store.
func (s *Store) UpdateGrant(ctx context.Context, id string, change func(*oauth.AccessGrant) error) error {
	return s.change(ctx, func(tx *sqlite.Tx) error {
		if recent, found := s.recentGrants.take(id); found {
			if changed, err := recent.change(tx, change); changed {
				return err
			}
		}
		before, err := s.newest(tx, id)
		if err != nil {
			return err
		}
		_, err = before.change(tx, change)
		return err
	})
}

// change writes what a change has changed, and reports whether that is anything.
func (g *storedGrant) change(tx *sqlite.Tx, change func(*oauth.AccessGrant) error) (changed bool, err error) {
	grant := g.restore()
	if err := change(grant); err != nil {
		return false, err
	}
	return swapGrant(tx, g.stored, grant)
}

// newest returns the state that a change is applied to. In a file it is mostly cached, because a
// lookup precedes most changes.
func (s *Store) newest(tx *sqlite.Tx, id string) (*storedGrant, error) {
	if entry, cached := tx.Cached(id); cached {
		return entry.(*storedGrant), nil
	}
	return s.engine.grant(tx.DB, id)
}

// swapGrant writes what a change has changed, but for the last use.
func swapGrant(tx *sqlite.Tx, before stored[grantRow], grant *oauth.AccessGrant) (changed bool, err error) {
	after := grantRow(grant.Snapshot())
	after.LastUsedAt, after.LastUsedToken = before.row.LastUsedAt, before.row.LastUsedToken
	changed, err = swap(tx, grantTable, before, &after, "updating a grant")
	if changed && err == nil {
		tx.ChangedGrant(after.ID, &storedGrant{stored: stored[grantRow]{after, before.version + 1}})
	}
	return changed, err
}

// RecordUse implements oauth.Store.
func (s *Store) RecordUse(ctx context.Context, uses map[string]oauth.Use) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(uses)), usesAtOnce) {
		err := s.change(ctx, func(tx *sqlite.Tx) error {
			statement := s.engine.recordUses(tx.DB, ids, uses)
			for _, id := range ids {
				tx.ChangedGrant(id, nil)
			}
			changed, err := statement.Run(tx.DB)
			if changed > 0 {
				tx.WroteRow()
			}
			return failed("recording the last uses of grants", err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// usesAtOnce is the largest number of rows in one statement.
const usesAtOnce = 400

// recordUses returns the statement that records the last uses of grants.
func (e engine) recordUses(db *gorm.DB, ids []string, uses map[string]oauth.Use) *mapper.Statement {
	values := make([]any, 0, 3*len(ids))
	for _, id := range ids {
		values = append(values, id, uses[id].At.UnixMilli(), int64(uses[id].Access))
	}
	statement := mapper.NewStatement(db)
	statement.Write(e.useHead+e.useRow+strings.Repeat(" UNION ALL SELECT ?, ?, ?", len(ids)-1)+e.useTail, values...)
	return statement
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
