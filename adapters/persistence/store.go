// Package persistence is the store of grants: oauth.Store on GORM, in a SQLite file (OpenSQLite) or
// on a database server that replicas share (OpenServer). Store has one method for each operation of
// the port. The rows of codes and grants are read and written in plain SQL (rows.go), all others by
// GORM; engine holds what differs between SQLite, PostgreSQL and MySQL. Package sqlite opens the
// file, and package secretfile keeps the server secret beside the database. SCHEMA.md explains the
// tables.
package persistence

import (
	"context"
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
// The change runs again, at most 16 times.
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
