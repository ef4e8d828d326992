// Package journal stores the steps of attempts to connect in the background.
package journal

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/diagnosis"
)

const (
	queueSize    = 1000
	batchSize    = 200
	batchPause   = 250 * time.Millisecond // between two batches, to leave the disk to requests
	writeTimeout = 5 * time.Second        // of an attempt to write a batch
	// Several attempts to write a batch, so that a broken connection loses no steps, but not
	// endless ones, so that a step that the store cannot keep does not block others.
	writeAttempts = 3
	trimInterval  = 1000   // written steps between two deletions of attempts
	maxUses       = 10_000 // maximum length of Journal.uses
)

// Journal is an attempt.Journal that queues steps, so that requests do not wait for the disk, and
// merges them into an attempt.Log in batches. It drops steps when its queue is full. It is safe
// for concurrent use.
type Journal struct {
	log    attempt.Log
	logger *slog.Logger
	now    func() time.Time
	queue  chan attempt.Entry
	lost   atomic.Int64
	mu     sync.Mutex
	uses   map[use]time.Time // when each was last noted
	open   context.Context   // until Close
	close  context.CancelFunc
	closed chan struct{} // closed after the last write
}

// use is a passed call or stream of an attempt.
type use struct {
	attempt string
	kind    attempt.Kind
}

// New starts a goroutine that writes to log until Close.
func New(log attempt.Log, logger *slog.Logger, now func() time.Time) *Journal {
	j := &Journal{
		log:    log,
		logger: logger,
		now:    now,
		queue:  make(chan attempt.Entry, queueSize),
		uses:   map[use]time.Time{},
		closed: make(chan struct{}),
	}
	j.open, j.close = context.WithCancel(context.Background())
	go j.write()
	return j
}

// Note implements attempt.Journal. Of the calls and of the streams of a client it takes one a day,
// and the next call after a failed step. Steps without a secret may use only half of the queue.
func (j *Journal) Note(entry attempt.Entry) {
	entry.At = j.now().UTC().Truncate(time.Millisecond)
	this, passed := use{entry.Attempt, entry.Kind}, entry.Outcome == attempt.Passed
	isUse := passed && this.attempt != "" && (this.kind == attempt.Call || this.kind == attempt.Stream)
	j.mu.Lock()
	defer j.mu.Unlock()
	if last, known := j.uses[this]; isUse && known && entry.At.Sub(last).Abs() < attempt.Renewal {
		return
	}
	room := queueSize
	if entry.Attempt == "" || entry.Kind.Is(attempt.InBrowser) {
		room /= 2
	}
	if len(j.queue) >= room {
		j.lost.Add(1)
		return
	}
	j.queue <- entry // does not block: senders hold the mutex
	if len(j.uses) >= maxUses {
		clear(j.uses) // so each is noted again
	}
	if isUse {
		j.uses[this] = entry.At
	} else if !passed {
		delete(j.uses, use{entry.Attempt, attempt.Call})
	}
}

// Close writes the queued steps and stops. It drops them if the store fails.
func (j *Journal) Close() {
	j.close()
	<-j.closed
}

func (j *Journal) write() {
	defer close(j.closed)
	written := 0
	for batch := j.next(); len(batch) > 0; batch = j.next() {
		if !j.store(batch) && j.open.Err() != nil {
			break
		}
		if written += len(batch); written >= trimInterval {
			written = 0
			ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
			if _, err := j.log.ForgetAttempts(ctx, time.Time{}, attempt.Capacity); err != nil {
				j.logger.Warn("cannot delete old attempts", "error", err)
			}
			cancel()
		}
		j.logLost()
	}
	j.lost.Add(int64(len(j.queue)))
	j.logLost()
}

// next waits for steps, and returns none when the journal is closed and empty.
func (j *Journal) next() (batch []attempt.Entry) {
	j.wait()
	select {
	case entry := <-j.queue:
		batch = append(batch, entry)
	case <-j.open.Done():
	}
	for len(batch) < batchSize {
		select {
		case entry := <-j.queue:
			batch = append(batch, entry)
		default:
			return batch
		}
	}
	return batch
}

// wait returns after a pause, or when the journal closes.
func (j *Journal) wait() {
	select {
	case <-time.After(batchPause):
	case <-j.open.Done():
	}
}

// store reports whether it has written the batch. If not, Note takes the next calls as new ones.
func (j *Journal) store(batch []attempt.Entry) bool {
	for tries := 1; ; tries++ {
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		err := diagnosis.Store(ctx, j.log, batch)
		cancel()
		switch {
		case err == nil:
			return true
		case tries == writeAttempts || j.open.Err() != nil:
			j.logger.Warn("cannot store trace steps", "steps", len(batch), "error", err)
			j.mu.Lock()
			defer j.mu.Unlock()
			clear(j.uses)
			return false
		}
		j.wait()
	}
}

func (j *Journal) logLost() {
	if lost := j.lost.Swap(0); lost > 0 {
		j.logger.Warn("trace incomplete: more steps than the store could write", "steps", lost)
	}
}
