package sqlite

import (
	"slices"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Tx is a transaction that records what a change writes, so that the GrantCache can follow it. A transaction on a database server has no cache;
// only its DB is set.
type Tx struct {
	*gorm.DB
	cache   *GrantCache
	changed []changedGrant
	unknown bool // anything may have changed
	wrote   bool // a row
}

// changedGrant is a grant that was written, with those of its secrets that are current.
type changedGrant struct {
	id      string
	current []CacheEntry
}

// Cached returns the cached entry of a secret when it is as new as the transaction.
func (tx *Tx) Cached(secret oauth.Digest) (CacheEntry, bool) {
	if tx.cache == nil {
		return nil, false
	}
	return tx.cache.newest(tx, secret)
}

// ChangedGrant records that the change writes a grant. current are all entries that lookups may find in the cache after the commit.
func (tx *Tx) ChangedGrant(id string, current []CacheEntry) {
	tx.changed = append(tx.changed, changedGrant{id, current})
}

// ChangedUnknown records that the change may write anything, so that the cache is emptied.
func (tx *Tx) ChangedUnknown() { tx.unknown = true }

// WroteRow records that there is something to commit.
func (tx *Tx) WroteRow() { tx.wrote = true }

func (tx *Tx) hasChanged(grant string) bool {
	return slices.ContainsFunc(tx.changed, func(c changedGrant) bool { return c.id == grant })
}
