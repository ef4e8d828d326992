package diagnosis

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/cache"
	"github.com/pasteport/pasteport/domain/connection"
)

const (
	queueSize    = 1000
	batchSize    = 200
	batchPause   = 250 * time.Millisecond // between two batches, to leave the disk to requests
	writeTimeout = 5 * time.Second        // of an attempt to write a batch
	// Several attempts to write a batch, so that a broken connection loses no steps, but not
	// endless ones, so that a step that the store cannot keep does not block others.
	writeAttempts = 3
	// Written steps between two deletions of old steps. A deletion costs as much as thousands of
	// writes.
	trimInterval  = 5000
	maxRemembered = 10_000      // sources
	repeatWindow  = time.Minute // in which an equal step of a source is not written again
)

// Journal is a connection.Journal that queues steps, so that requests do not wait for the disk, and
// writes them to a connection.Log in batches. It drops steps when its queue is full. It is safe for
// concurrent use.
type Journal struct {
	log    connection.Log
	logger *slog.Logger
	queue  chan connection.Step
	lost   atomic.Int64
	mu     sync.Mutex                          // makes reading and adding to seen in remember one action
	seen   *cache.LRU[source, connection.Step] // the last queued step of each source
	pause  time.Duration                       // after each batch
	open   context.Context                     // until Close
	close  context.CancelFunc
	closed chan struct{} // closed after the last write
}

// source groups steps to detect repeated ones: the passed steps of one kind in a connection, its
// failed or refused steps, or the steps of one client without a connection.
type source struct {
	attempt, address, agent string
	passed                  connection.Kind // of passed steps; "" for failed or refused ones
}

// NewJournal starts a goroutine that writes to log until Close.
func NewJournal(log connection.Log, logger *slog.Logger) *Journal {
	return start(log, logger, batchPause)
}

func start(log connection.Log, logger *slog.Logger, pause time.Duration) *Journal {
	j := &Journal{
		log:    log,
		logger: logger,
		queue:  make(chan connection.Step, queueSize),
		seen:   cache.New[source, connection.Step](maxRemembered),
		pause:  pause,
		closed: make(chan struct{}),
	}
	j.open, j.close = context.WithCancel(context.Background())
	go j.write()
	return j
}

// Note implements connection.Journal. Under load it drops unauthenticated steps first.
func (j *Journal) Note(step connection.Step) {
	if j.remember(step) && !j.enqueue(step) {
		j.lost.Add(1)
		j.forgetSeen(step)
	}
}

// enqueue reports whether the queue had room. Unauthenticated steps use only half of it.
func (j *Journal) enqueue(step connection.Step) bool {
	unauthenticated := step.Attempt == "" || slices.Contains(connection.Unproven, step.Kind)
	if unauthenticated && len(j.queue) >= queueSize/2 {
		return false
	}
	select {
	case j.queue <- step:
		return true
	default:
		return false
	}
}

// forgetSeen makes remember accept the next equal steps, because these were not written.
func (j *Journal) forgetSeen(steps ...connection.Step) {
	for _, step := range steps {
		j.seen.Remove(sourceOf(step))
	}
}

func sourceOf(step connection.Step) source {
	switch {
	case step.Attempt != "" && step.Outcome == connection.Passed:
		return source{attempt: step.Attempt, passed: step.Kind}
	case step.Attempt != "":
		return source{attempt: step.Attempt}
	}
	return source{address: step.Address, agent: step.Agent}
}

// remember keeps the step as the last one of its source, and reports whether it is to be written.
// Redundant are a passed call of a connection after its first one of a day, and the same step of a
// source twice in a row within a minute.
func (j *Journal) remember(step connection.Step) (isNew bool) {
	if isAlwaysWritten(step) {
		j.forgetPassedCall(step)
		return true
	}
	from := sourceOf(step)
	j.mu.Lock()
	defer j.mu.Unlock()
	if last, known := j.seen.Get(from); known {
		age := step.At.Sub(last.At).Abs()
		if from.passed != "" && age < connection.Renewal || age < repeatWindow && isSame(last, step) {
			return false
		}
	}
	j.seen.Add(from, step)
	j.forgetPassedCall(step)
	return true
}

// HasRecent implements connection.Journal, for passed calls and streams of connections only.
func (j *Journal) HasRecent(attempt string, kind connection.Kind, at time.Time) bool {
	if attempt == "" || kind != connection.Call && kind != connection.Stream {
		return false
	}
	last, seen := j.seen.Get(source{attempt: attempt, passed: kind})
	return seen && at.Sub(last.At).Abs() < connection.Renewal
}

// forgetPassedCall makes remember accept the next passed call of the connection after a failed
// step, so that the trace shows the recovery.
func (j *Journal) forgetPassedCall(step connection.Step) {
	if step.Outcome != connection.Passed {
		j.seen.Remove(source{attempt: step.Attempt, passed: connection.Call})
	}
}

// isAlwaysWritten reports whether a step is written even if repeated: its request ID was shown on a
// page, or it changes a connection.
func isAlwaysWritten(step connection.Step) bool {
	switch step.Kind {
	case connection.Authorize, connection.ClientMetadata, connection.Page:
		return true
	case connection.Call, connection.Stream:
		return false
	}
	return step.Attempt != ""
}

// isSame reports whether the steps differ only in their time and request.
func isSame(a, b connection.Step) bool {
	a.At, a.Request, b.At, b.Request = time.Time{}, "", time.Time{}, ""
	return a == b
}

// Close writes the queued steps and stops. It drops them if the store fails.
func (j *Journal) Close() {
	j.close()
	<-j.closed
}

func (j *Journal) write() {
	defer close(j.closed)
	for written := 0; j.open.Err() == nil; {
		select {
		case step := <-j.queue:
			written += j.store(j.gather(step))
		case <-j.open.Done():
		}
		if written >= trimInterval {
			written = 0
			j.trim()
		}
		j.wait()
	}
	for j.store(j.gather()) > 0 {
	}
	j.logLost(len(j.queue))
}

// gather adds queued steps up to a batch.
func (j *Journal) gather(steps ...connection.Step) []connection.Step {
	for len(steps) < batchSize {
		select {
		case step := <-j.queue:
			steps = append(steps, step)
		default:
			return steps
		}
	}
	return steps
}

func (j *Journal) store(steps []connection.Step) int {
	if len(steps) == 0 {
		return 0
	}
	err := j.add(steps)
	for attempt := 1; err != nil && attempt < writeAttempts && j.open.Err() == nil; attempt++ {
		j.wait()
		err = j.add(steps)
	}
	if err != nil {
		j.logger.Warn("cannot store trace steps", "steps", len(steps), "error", err)
		j.forgetSeen(steps...)
		return 0
	}
	j.logLost(0)
	return len(steps)
}

func (j *Journal) add(steps []connection.Step) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	return j.log.AddSteps(ctx, steps)
}

// wait returns after the pause, or when the journal closes.
func (j *Journal) wait() {
	select {
	case <-time.After(j.pause):
	case <-j.open.Done():
	}
}

// logLost logs the number of steps lost since the last time, and of those left in the queue.
func (j *Journal) logLost(left int) {
	if lost := int(j.lost.Swap(0)) + left; lost > 0 {
		j.logger.Warn("trace incomplete: more steps than the store could write", "steps", lost)
	}
}

func (j *Journal) trim() {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if _, err := j.log.ForgetSteps(ctx, time.Time{}, connection.Capacity); err != nil {
		j.logger.Warn("cannot delete old trace steps", "error", err)
	}
}
