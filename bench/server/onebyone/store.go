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

// AddCode implements oauth.Store.
func (s *Store) AddCode(ctx context.Context, code *oauth.AuthorizationCode,
	supersede func(*oauth.AuthorizationCode) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.AddCode(ctx, code, supersede)
}

// RedeemCode implements oauth.Store.
func (s *Store) RedeemCode(ctx context.Context, known *oauth.AuthorizationCode,
	redeem func(*oauth.AuthorizationCode) (*oauth.AccessGrant, error)) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.RedeemCode(ctx, known, redeem)
}

// UpdateGrant implements oauth.Store.
func (s *Store) UpdateGrant(ctx context.Context, known *oauth.AccessGrant,
	change func(*oauth.AccessGrant) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.UpdateGrant(ctx, known, change)
}
