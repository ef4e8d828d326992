package bootstrap

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// endedInterval is the interval of the queries for ended grants. Streams close within a second of the end (G16).
	endedInterval = time.Second / 2
	// endedOverlap is how much each query overlaps the one before. A grant has the time of its end before the transaction commits: a transaction waits
	// up to five seconds, and the clocks of the machines may differ by the rest.
	endedOverlap = 10 * time.Second
	// endedTimeout bounds a query.
	endedTimeout = 5 * time.Second
)

// streamCloser has open streams and sessions of clients.
type streamCloser interface {
	Idle() bool
	CloseEnded(ended oauth.Ended)
}

// endedGrants closes the streams of grants that other processes on the same store have ended.
type endedGrants struct {
	watcher oauth.EndWatcher
	now     func() time.Time
	logger  *slog.Logger
	since   time.Time // of the last successful query, or of the last tick without open streams
	failing bool

	mu      sync.Mutex
	servers []streamCloser
}

// watchEndedGrants does nothing if the store is not an oauth.EndWatcher.
func (a *OAuthServer) watchEndedGrants(ctx context.Context, store oauth.Store) {
	watcher, watches := store.(oauth.EndWatcher)
	a.ended = &endedGrants{watcher: watcher, now: a.config.Now, logger: a.config.Logger, since: a.config.Now()}
	if watches {
		go a.ended.poll(ctx)
	}
}

// add registers a server.
func (e *endedGrants) add(server streamCloser) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers = append(e.servers, server)
}

// busy returns the servers with open streams or sessions.
func (e *endedGrants) busy() (busy []streamCloser) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, server := range e.servers {
		if !server.Idle() {
			busy = append(busy, server)
		}
	}
	return busy
}

// poll closes the streams of ended grants until ctx ends.
func (e *endedGrants) poll(ctx context.Context) {
	ticks := time.NewTicker(endedInterval)
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

// close queries the ended grants once and closes their streams. It makes no query while nothing is open, because a new stream checks its own grant.
// After an outage of the store the next query begins before the outage.
func (e *endedGrants) close(ctx context.Context) {
	now, busy := e.now(), e.busy()
	if len(busy) == 0 {
		e.since, e.failing = now, false
		return
	}
	limited, cancel := context.WithTimeout(ctx, endedTimeout)
	defer cancel()
	ended, err := e.watcher.EndedSince(limited, e.since.Add(-endedOverlap))
	if err != nil {
		if !e.failing && ctx.Err() == nil {
			e.logger.WarnContext(ctx, "cannot query the connections that other processes have ended", "error", err)
		}
		e.failing = true
		return
	}
	e.since, e.failing = now, false
	for _, server := range busy {
		server.CloseEnded(ended)
	}
}
