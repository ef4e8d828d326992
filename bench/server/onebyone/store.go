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

// AddCode waits for its turn.
func (s *Store) AddCode(ctx context.Context, code *oauth.AuthorizationCode, supersede func(*oauth.AuthorizationCode) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.AddCode(ctx, code, supersede)
}

// RedeemCode waits for its turn.
func (s *Store) RedeemCode(ctx context.Context, code oauth.Digest, redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.RedeemCode(ctx, code, redeem)
}

// UpdateGrant waits for its turn.
func (s *Store) UpdateGrant(ctx context.Context, secret oauth.Digest, change func(*oauth.AccessGrant) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.UpdateGrant(ctx, secret, change)
}
