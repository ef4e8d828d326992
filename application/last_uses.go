package application

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// maxPendingUses is how many grants have their uses kept while the store cannot be written.
const maxPendingUses = 100_000

// usesAtOnce is how many uses a flush writes before it forgets them. When a slow flush is cut off,
// the next one goes on there.
const usesAtOnce = 2000

// lastUses collects the last uses of grants until FlushUses has written them, so that a call does
// not write. The zero value is ready to use.
type lastUses struct {
	mu      sync.Mutex
	pending map[string]oauth.Use // by grant
}

// add records the use of a grant with an access token.
func (l *lastUses) add(grant *oauth.AccessGrant, token oauth.Secret, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, known := l.pending[grant.ID()]
	grant.RecordUse(kept) // NewUse compares with it
	use, isNew := grant.NewUse(token, now)
	if !isNew || !known && len(l.pending) >= maxPendingUses {
		return
	}
	if l.pending == nil {
		l.pending = map[string]oauth.Use{}
	}
	l.pending[grant.ID()] = use
}

// of returns the last use of a grant that the store may not have yet, or the zero Use.
func (l *lastUses) of(grant string) oauth.Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[grant]
}

// batch returns at most usesAtOnce uses.
func (l *lastUses) batch() map[string]oauth.Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := map[string]oauth.Use{}
	for grant, use := range l.pending {
		if len(batch) == usesAtOnce {
			break
		}
		batch[grant] = use
	}
	return batch
}

// written forgets uses that the store has, unless there is a later one of the grant.
func (l *lastUses) written(uses map[string]oauth.Use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for grant, use := range uses {
		if l.pending[grant] == use {
			delete(l.pending, grant)
		}
	}
}

// FlushUses writes the last uses of grants that were collected since the last call. The caller
// calls it every second and at the end.
func (s Operator) FlushUses(ctx context.Context) error {
	if err := s.flushing.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting for another flush: %w", err)
	}
	defer s.flushing.Release(1)
	for batch := s.uses.batch(); len(batch) > 0; batch = s.uses.batch() {
		if err := s.store.RecordUse(ctx, batch); err != nil {
			return err
		}
		s.uses.written(batch)
	}
	return nil
}
