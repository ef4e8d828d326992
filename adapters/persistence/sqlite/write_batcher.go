package sqlite

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/pasteport/pasteport/domain/oauth"
)

// maxBatch keeps a transaction short for the writes that wait for the next one.
const maxBatch = 256

// writeBatcher carries out writes that wait at the same moment in one transaction, with one flush
// of the disk: group commit. A write never waits for other writes to arrive, so a lone write takes
// no longer. One goroutine at a time runs the transactions.
type writeBatcher struct {
	writer *gorm.DB
	grants *GrantCache

	mu      sync.Mutex
	waiting []*pendingWrite
	running bool
}

// pendingWrite is one write. An error of it undoes this write alone.
type pendingWrite struct {
	ctx      context.Context
	change   func(tx *Tx) error
	taken    atomic.Bool // by run, or by its caller, who has given up
	answered chan struct{}
	err      error
	panicked any
	broken   bool // the transaction has failed, and not only this write
}

// do waits for its turn no longer than lockTimeout, and then for the result.
func (b *writeBatcher) do(ctx context.Context, lockTimeout time.Duration, change func(tx *Tx) error) error {
	w := &pendingWrite{ctx: ctx, change: change, answered: make(chan struct{})}
	b.enqueue(w)
	late := time.NewTimer(lockTimeout)
	defer late.Stop()
	var gaveUp error
	select {
	case <-w.answered:
	case <-ctx.Done():
		gaveUp = ctx.Err()
	case <-late.C:
		gaveUp = context.DeadlineExceeded
	}
	if gaveUp != nil && w.taken.CompareAndSwap(false, true) {
		return unavailable("beginning a transaction", gaveUp)
	}
	<-w.answered
	if w.panicked != nil {
		panic(w.panicked)
	}
	return w.err
}

func (b *writeBatcher) enqueue(w *pendingWrite) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, w)
	if !b.running {
		b.running = true
		go b.run()
	}
}

// run carries out writes until none waits. It yields before each transaction, so that goroutines
// that are about to write join it.
func (b *writeBatcher) run() {
	for waiting := b.length(); waiting > 0; waiting = b.remaining() {
		runtime.Gosched()
		tx, err := b.begin()
		if err != nil { // writes that came meanwhile have not had their wait
			refuse(b.dequeue(waiting), unavailable("beginning a transaction", err))
			continue
		}
		b.carryOut(tx, b.dequeue(maxBatch))
	}
}

// remaining returns how many writes wait. When it returns 0, the next write starts run again.
func (b *writeBatcher) remaining() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = len(b.waiting) > 0
	return len(b.waiting)
}

// begin waits for the write lock.
func (b *writeBatcher) begin() (*writeTx, error) {
	pool, err := b.writer.DB()
	if err != nil {
		return nil, err
	}
	tx, err := pool.Begin()
	return &writeTx{Tx: tx}, err
}

func (b *writeBatcher) length() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// dequeue removes the first writes, at most so many.
func (b *writeBatcher) dequeue(limit int) []*pendingWrite {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit = min(limit, len(b.waiting))
	first := slices.Clone(b.waiting[:limit])
	b.waiting = slices.Delete(b.waiting, 0, limit)
	return first
}

// requeue puts writes in front again: those that were undone, and those that have not run.
func (b *writeBatcher) requeue(undone, rest []*pendingWrite) {
	for _, w := range undone {
		w.err, w.panicked, w.broken = nil, nil, false
		w.taken.Store(false)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.Concat(undone, rest, b.waiting)
}

// refuse answers the writes whose callers have not given up.
func refuse(writes []*pendingWrite, err error) {
	for _, w := range writes {
		if w.taken.CompareAndSwap(false, true) {
			w.err = err
			close(w.answered)
		}
	}
}

// carryOut runs the writes in one transaction and answers them. When a write fails after it has
// changed a row, or may have ended the transaction, it is answered alone and the others run again.
// A savepoint for each write would cost all of them more, because rules refuse before a row
// changes.
func (b *writeBatcher) carryOut(in *writeTx, writes []*pendingWrite) {
	// With a context GORM makes a new statement instead of using the writer's.
	session := gorm.Session{NewDB: true, Context: context.Background()}
	tx := &Tx{DB: b.writer.Session(&session), cache: b.grants}
	tx.Statement.ConnPool = in
	b.grants.begin()
	var done []*pendingWrite
	for i, w := range writes {
		if !w.taken.CompareAndSwap(false, true) {
			continue
		}
		changed := len(tx.changed)
		in.wrote, in.ended = false, nil
		w.run(tx)
		if in.ended != nil {
			w.broken, w.err = true, cmp.Or(w.err, unavailable("writing", in.ended))
		}
		if w.hasFailed() {
			tx.changed = tx.changed[:changed]
		}
		if w.broken || w.hasFailed() && (len(writes) == 1 || in.wrote) {
			w.err = errors.Join(w.err, unavailable("rolling back", in.Rollback()))
			b.grants.settle(new(Tx))
			close(w.answered)
			b.requeue(done, writes[i+1:])
			return
		}
		done = append(done, w)
	}
	err := unavailable("committing", in.Commit())
	tx.unknown = tx.unknown || err != nil
	b.grants.settle(tx)
	answer(done, err)
}

// canceled is also checked after the change, so that nothing is committed for a caller that has
// given up.
func (w *pendingWrite) canceled() error { return unavailable("changing", w.ctx.Err()) }

func (w *pendingWrite) hasFailed() bool { return w.err != nil || w.panicked != nil }

// run keeps a panic for the caller of do.
func (w *pendingWrite) run(tx *Tx) {
	defer func() { w.panicked = recover() }()
	if w.err = w.canceled(); w.err != nil {
		return
	}
	w.err = w.change(tx)
	w.broken = errors.Is(w.err, oauth.ErrUnavailable)
	if w.err == nil {
		w.err = w.canceled()
	}
}

// answer answers the writes; err is the result of their commit.
func answer(writes []*pendingWrite, err error) {
	for _, w := range writes {
		if !w.hasFailed() {
			w.err = err
		}
		close(w.answered)
	}
}
