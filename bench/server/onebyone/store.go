// Package onebyone is our store without company: each write has a transaction and a flush of the disk for itself, as it would without group commit.
package onebyone

import (
	"context"
	"sync"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Store lets one write at a time come.
type Store struct {
	*persistence.Store
	turn sync.Mutex
}

// Open opens a file.
func Open(file string) (*Store, error) {
	store, err := persistence.OpenSQLite(file)
	if err != nil {
		return nil, err
	}
	return &Store{Store: store}, nil
}

// AddGrant waits for its turn.
func (s *Store) AddGrant(ctx context.Context, grant *oauth.AccessGrant, supersede func(*oauth.AccessGrant) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.AddGrant(ctx, grant, supersede)
}

// UpdateGrant waits for its turn.
func (s *Store) UpdateGrant(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.UpdateGrant(ctx, secret, change)
}
