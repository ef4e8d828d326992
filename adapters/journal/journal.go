// Package journal writes the steps of connections down beside the requests that take them: in batches, and rather not at all than
// late.
package journal

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
	waiting    = 1000 // steps that may wait to be written
	batch      = 200
	pause      = 250 * time.Millisecond // between two batches, so that requests have the disk for themselves
	patience   = 5 * time.Second        // for one batch
	forgetting = 5000                   // steps between two times that old ones are forgotten, which takes as long as writing some thousands
	remembered = 10_000
	repeating  = time.Minute
)

// Journal is a trace.Journal in front of a trace.Log. It is safe for concurrent use.
type Journal struct {
	log     trace.Log
	logger  *slog.Logger
	queue   chan *trace.Step // not the steps: room for all of them would be in the way of every garbage collection
	lost    atomic.Int64
	mu      sync.Mutex
	seen    *lru.Cache[who, trace.Step]
	end     sync.Once
	closing chan struct{}
	closed  chan struct{}
}

// who takes steps: a connection with its passed calls or streams, a connection with those that were refused, or a stranger.
type who struct {
	attempt, address, agent string
	passed                  trace.Kind
}

// New begins to write to log, until Close.
func New(log trace.Log, logger *slog.Logger) *Journal {
	seen, _ := lru.New[who, trace.Step](remembered) // fails only for a size below one
	j := &Journal{
		log: log, logger: logger, queue: make(chan *trace.Step, waiting), seen: seen,
		closing: make(chan struct{}), closed: make(chan struct{}),
	}
	go j.write()
	return j
}

// Note implements trace.Journal. When too much happens at once, what anybody can do is lost first.
func (j *Journal) Note(step trace.Step) {
	if !j.repeats(step) && !j.takes(step) {
		j.lost.Add(1)
		j.retract(step)
	}
}

// takes queues the step if there is room for it; what anybody can do has half of the room.
func (j *Journal) takes(step trace.Step) bool {
	anybody := step.Attempt == "" || slices.Contains(trace.Unproven, step.Kind)
	if anybody && len(j.queue) >= waiting/2 {
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

// retract lets what was not written be told again.
func (j *Journal) retract(steps ...trace.Step) {
	for _, step := range steps {
		j.seen.Remove(whoseIs(step))
	}
}

func whoseIs(step trace.Step) who {
	switch {
	case step.Attempt != "" && step.Outcome == trace.Passed:
		return who{attempt: step.Attempt, passed: step.Kind}
	case step.Attempt != "":
		return who{attempt: step.Attempt}
	}
	return who{address: step.Address, agent: step.Agent}
}

// repeats reports whether the step tells nothing new: a connection's calls after the first of a day, and whatever somebody does a
// second time within a minute without doing anything else.
func (j *Journal) repeats(step trace.Step) bool {
	if tells(step) {
		j.expectNews(step)
		return false
	}
	whose := whoseIs(step)
	j.mu.Lock()
	defer j.mu.Unlock()
	last, seen := j.seen.Get(whose)
	age := step.At.Sub(last.At).Abs()
	if seen && (whose.passed != "" && age < trace.Renewal || age < repeating && same(last, step)) {
		return true
	}
	j.seen.Add(whose, step)
	j.expectNews(step)
	return false
}

// Knows implements trace.Journal. Only what is done again and again is remembered in this way: a connection's calls and streams.
func (j *Journal) Knows(attempt string, kind trace.Kind, at time.Time) bool {
	if attempt == "" || kind != trace.Call && kind != trace.Stream {
		return false
	}
	last, seen := j.seen.Get(who{attempt: attempt, passed: kind})
	return seen && at.Sub(last.At).Abs() < trace.Renewal
}

// expectNews takes note that the connection's next call is news if it passes, because this step did not.
func (j *Journal) expectNews(step trace.Step) {
	if step.Outcome != trace.Passed {
		j.seen.Remove(who{attempt: step.Attempt, passed: trace.Call})
	}
}

// tells reports that a step is always news: a person may have read its request's id on a page, or it changes a connection.
func tells(step trace.Step) bool {
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

// Close writes what is still waiting, until the store fails.
func (j *Journal) Close() {
	j.end.Do(func() { close(j.closing) })
	<-j.closed
}

func (j *Journal) write() {
	defer close(j.closed)
	for written := 0; !j.ending(); {
		select {
		case step := <-j.queue:
			written += j.store(j.gather(*step))
		case <-j.closing:
		}
		if written >= forgetting {
			written = 0
			j.forget()
		}
		select {
		case <-time.After(pause):
		case <-j.closing:
		}
	}
	for j.store(j.gather()) > 0 {
	}
	j.count(len(j.queue))
}

func (j *Journal) ending() bool {
	select {
	case <-j.closing:
		return true
	default:
		return false
	}
}

// gather takes along what else is waiting.
func (j *Journal) gather(steps ...trace.Step) []trace.Step {
	for len(steps) < batch {
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := j.log.AddSteps(ctx, steps); err != nil {
		j.logger.Warn("trace not stored", "steps", len(steps), "error", err)
		j.retract(steps...)
		return 0
	}
	j.count(0)
	return len(steps)
}

// count says how many steps were lost, with those that will be.
func (j *Journal) count(left int) {
	if lost := int(j.lost.Swap(0)) + left; lost > 0 {
		j.logger.Warn("trace not complete: too much happened at once", "steps", lost)
	}
}

func (j *Journal) forget() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := j.log.ForgetSteps(ctx, time.Time{}, trace.Capacity); err != nil {
		j.logger.Warn("trace not shortened", "error", err)
	}
}
