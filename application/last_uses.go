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

// usesAtOnce is how many uses a flush writes before it forgets them, so that the next flush goes on
// where a slow one was cut off.
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
	grant.RecordUse(kept)
	use, isNew := grant.NewUse(token, now)
	if !isNew || !known && len(l.pending) >= maxPendingUses {
		return
	}
	if l.pending == nil {
		l.pending = map[string]oauth.Use{}
	}
	l.pending[grant.ID()] = use
}

// of returns the last use that the store may not have yet.
func (l *lastUses) of(grant string) oauth.Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[grant]
}

// some returns at most usesAtOnce uses.
func (l *lastUses) some() map[string]oauth.Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	some := map[string]oauth.Use{}
	for grant, use := range l.pending {
		if len(some) == usesAtOnce {
			break
		}
		some[grant] = use
	}
	return some
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
	for some := s.uses.some(); len(some) > 0; some = s.uses.some() {
		if err := s.store.RecordUse(ctx, some); err != nil {
			return err
		}
		s.uses.written(some)
	}
	return nil
}
