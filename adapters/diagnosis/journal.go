package diagnosis

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pasteport/pasteport/domain/trace"
)

const (
	queueSize    = 1000
	batchSize    = 200
	batchPause   = 250 * time.Millisecond // between two batches, to leave the disk to requests
	writeTimeout = 5 * time.Second        // of an attempt to write a batch
	// so that a broken connection loses no steps; a step that the store cannot
	// keep does not block others
	writeAttempts = 3
	// written steps between two deletions of old steps; a deletion costs as
	// much as thousands of writes
	trimInterval  = 5000
	maxRemembered = 10_000
	repeatWindow  = time.Minute
)

// Journal is a trace.Journal that queues steps, so that requests do not wait for the disk, and
// writes them to a trace.Log in batches. It drops steps when its queue is full. It is safe for
// concurrent use.
type Journal struct {
	log     trace.Log
	logger  *slog.Logger
	queue   chan *trace.Step // pointers, because the garbage collector would scan a buffer of steps each time
	lost    atomic.Int64
	mu      sync.Mutex
	seen    *lru.Cache[source, trace.Step] // the last queued step of each source
	pause   time.Duration                  // after each batch
	end     sync.Once
	closing chan struct{}
	closed  chan struct{}
}

// source groups steps to detect repeated ones: the passed calls or streams of a connection, its
// other steps, or the steps of a client without a connection.
type source struct {
	attempt, address, agent string
	passed                  trace.Kind
}

// NewJournal starts a goroutine that writes to log until Close.
func NewJournal(log trace.Log, logger *slog.Logger) *Journal { return start(log, logger, batchPause) }

func start(log trace.Log, logger *slog.Logger, pause time.Duration) *Journal {
	seen, _ := lru.New[source, trace.Step](maxRemembered) // fails only for a size below one
	j := &Journal{
		log:     log,
		logger:  logger,
		queue:   make(chan *trace.Step, queueSize),
		seen:    seen,
		pause:   pause,
		closing: make(chan struct{}),
		closed:  make(chan struct{}),
	}
	go j.write()
	return j
}

// Note implements trace.Journal. Under load it drops unauthenticated steps first.
func (j *Journal) Note(step trace.Step) {
	if !j.repeats(step) && !j.enqueue(step) {
		j.lost.Add(1)
		j.forgetSeen(step)
	}
}

// enqueue reports whether the queue had room. Unauthenticated steps use only half of it.
func (j *Journal) enqueue(step trace.Step) bool {
	unauthenticated := step.Attempt == "" || slices.Contains(trace.Unproven, step.Kind)
	if unauthenticated && len(j.queue) >= queueSize/2 {
		return false
	}
	queued := step
	select {
	case j.queue <- &queued:
		return true
	default:
		return false
	}
}

// forgetSeen makes repeats accept the next equal steps, because these were not written.
func (j *Journal) forgetSeen(steps ...trace.Step) {
	for _, step := range steps {
		j.seen.Remove(sourceOf(step))
	}
}

func sourceOf(step trace.Step) source {
	switch {
	case step.Attempt != "" && step.Outcome == trace.Passed:
		return source{attempt: step.Attempt, passed: step.Kind}
	case step.Attempt != "":
		return source{attempt: step.Attempt}
	}
	return source{address: step.Address, agent: step.Agent}
}

// repeats reports whether the step is redundant: a passed call of a connection after its first one
// of a day, or the same step of a source twice in a row within a minute.
func (j *Journal) repeats(step trace.Step) bool {
	if isAlwaysWritten(step) {
		j.writeNextCall(step)
		return false
	}
	from := sourceOf(step)
	j.mu.Lock()
	defer j.mu.Unlock()
	last, seen := j.seen.Get(from)
	age := step.At.Sub(last.At).Abs()
	if seen && (from.passed != "" && age < trace.Renewal || age < repeatWindow && same(last, step)) {
		return true
	}
	j.seen.Add(from, step)
	j.writeNextCall(step)
	return false
}

// HasRecent implements trace.Journal, for passed calls and streams of connections only.
func (j *Journal) HasRecent(attempt string, kind trace.Kind, at time.Time) bool {
	if attempt == "" || kind != trace.Call && kind != trace.Stream {
		return false
	}
	last, seen := j.seen.Get(source{attempt: attempt, passed: kind})
	return seen && at.Sub(last.At).Abs() < trace.Renewal
}

// writeNextCall makes repeats accept the next passed call of the connection after a failed step, so
// that the trace shows the recovery.
func (j *Journal) writeNextCall(step trace.Step) {
	if step.Outcome != trace.Passed {
		j.seen.Remove(source{attempt: step.Attempt, passed: trace.Call})
	}
}

// isAlwaysWritten reports whether a step is written even if repeated: its request ID was shown on a
// page, or it changes a connection.
func isAlwaysWritten(step trace.Step) bool {
	switch step.Kind {
	case trace.Authorize, trace.ClientMetadata, trace.Page:
		return true
	case trace.Call, trace.Stream:
		return false
	}
	return step.Attempt != ""
}

func same(a, b trace.Step) bool {
	a.At, a.Request, b.At, b.Request = time.Time{}, "", time.Time{}, ""
	return a == b
}

// Close writes the queued steps and stops. It drops them if the store fails.
func (j *Journal) Close() {
	j.end.Do(func() { close(j.closing) })
	<-j.closed
}

func (j *Journal) write() {
	defer close(j.closed)
	for written := 0; !j.isClosing(); {
		select {
		case step := <-j.queue:
			written += j.store(j.gather(*step))
		case <-j.closing:
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

func (j *Journal) isClosing() bool {
	select {
	case <-j.closing:
		return true
	default:
		return false
	}
}

// gather adds queued steps up to a batch.
func (j *Journal) gather(steps ...trace.Step) []trace.Step {
	for len(steps) < batchSize {
		select {
		case step := <-j.queue:
			steps = append(steps, *step)
		default:
			return steps
		}
	}
	return steps
}

func (j *Journal) store(steps []trace.Step) int {
	if len(steps) == 0 {
		return 0
	}
	err := j.add(steps)
	for attempt := 1; err != nil && attempt < writeAttempts && !j.isClosing(); attempt++ {
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

func (j *Journal) add(steps []trace.Step) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	return j.log.AddSteps(ctx, steps)
}

// wait returns after the pause, or when the journal closes.
func (j *Journal) wait() {
	select {
	case <-time.After(j.pause):
	case <-j.closing:
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
	if _, err := j.log.ForgetSteps(ctx, time.Time{}, trace.Capacity); err != nil {
		j.logger.Warn("cannot delete old trace steps", "error", err)
	}
}
