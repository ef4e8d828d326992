// Package onebyone is Pasteport's store without group commit: one transaction and one disk flush
// per write.
package onebyone

import (
	"context"
	"sync"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Store runs one write at a time.
type Store struct {
	*persistence.Store
	turn sync.Mutex
}

// Open opens a SQLite file.
func Open(file string) (*Store, error) {
	store, err := persistence.OpenSQLite(file)
	if err != nil {
		return nil, err
	}
	return &Store{Store: store}, nil
}

// Change implements oauth.Store.
func (s *Store) Change(ctx context.Context, of oauth.Selection, change func(*oauth.Authorizations) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.Change(ctx, of, change)
}
