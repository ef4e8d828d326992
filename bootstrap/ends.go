package bootstrap

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// endsEvery is how often a process asks what has ended elsewhere, so that its own streams close within a second (G16).
	endsEvery = time.Second / 2
	// endsOverlap is how far each question reaches back behind the one before. An end is dated before it is committed, by the clock of
	// its own machine: a transaction waits five seconds at most, and clocks may differ by the rest.
	endsOverlap = 10 * time.Second
	// endsPatience is how long the store may take to answer; an outage is noted, and a stream's beats go on asking.
	endsPatience = 5 * time.Second
)

// holder is what holds streams and sessions of clients open.
type holder interface {
	Idle() bool
	CloseEnded(ended oauth.Ended)
}

// ends closes what other processes on the same store have ended.
type ends struct {
	watcher oauth.EndWatcher
	now     func() time.Time
	logger  *slog.Logger
	asked   time.Time // at the last answer, or while nothing was open
	failing bool

	mu      sync.Mutex
	holders []holder
}

// watchEnds does nothing over a store that cannot say what has ended.
func (a *OAuthServer) watchEnds(ctx context.Context, store oauth.Store) {
	watcher, watches := store.(oauth.EndWatcher)
	a.ends = &ends{watcher: watcher, now: a.config.Now, logger: a.config.Logger, asked: a.config.Now()}
	if watches {
		go a.ends.watch(ctx)
	}
}

// add lets a server's streams be closed.
func (e *ends) add(h holder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.holders = append(e.holders, h)
}

// busy are the holders that have something to close.
func (e *ends) busy() (busy []holder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.holders {
		if !h.Idle() {
			busy = append(busy, h)
		}
	}
	return busy
}

func (e *ends) watch(ctx context.Context) {
	ticks := time.NewTicker(endsEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			e.close(ctx)
		}
	}
}

// close asks once and closes what has ended. While nothing is open nothing is asked: whatever is opened next is asked about itself.
// During an outage nothing is closed, and the first answer after it reaches back to its beginning.
func (e *ends) close(ctx context.Context) {
	now, busy := e.now(), e.busy()
	if len(busy) == 0 {
		e.asked, e.failing = now, false
		return
	}
	limited, cancel := context.WithTimeout(ctx, endsPatience)
	defer cancel()
	ended, err := e.watcher.EndedSince(limited, e.asked.Add(-endsOverlap))
	if err != nil {
		if !e.failing && ctx.Err() == nil {
			e.logger.WarnContext(ctx, "cannot ask which connections have ended elsewhere", "error", err)
		}
		e.failing = true
		return
	}
	e.asked, e.failing = now, false
	for _, h := range busy {
		h.CloseEnded(ended)
	}
}
