package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

// agreeOnSecret runs AgreeOnSecret, and adds the remedy if the store has another server secret.
func (a *OAuthServer) agreeOnSecret() error {
	err := a.server.AgreeOnSecret(context.Background())
	if errors.Is(err, oauth.ErrOtherSecret) {
		return fmt.Errorf("%w, so this process cannot unseal what is in it: restore the secret that was backed "+
			"up with it, or copy the file of server-secret from another replica; if it is lost, \"pasteport keys "+
			"rotate --forget-old\" generates another one, and clients connect again", err)
	}
	return err
}

// flushUses writes the last uses of grants, even if ctx has ended.
func (a *OAuthServer) flushUses(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := a.server.Operator.FlushUses(limited); err != nil {
		a.config.Logger.WarnContext(ctx, "cannot store the last uses of grants", "error", err)
	}
}

// every calls work at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, work func(context.Context)) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			work(ctx)
		}
	}
}

const sweepInterval = 10 * time.Minute

// sweep deletes expired rows.
func (a *OAuthServer) sweep(ctx context.Context) {
	rows, err := a.server.Operator.Sweep(ctx)
	if err != nil {
		a.config.Logger.WarnContext(ctx, "cannot delete expired rows", "error", err)
		return
	}
	a.config.Logger.DebugContext(ctx, "deleted expired rows", "rows", rows)
}

const (
	endedInterval = time.Second / 2 // between two queries for ended grants; streams close within a second
	// endedOverlap is how much each query overlaps the one before. The time of an end is set up to
	// five seconds before its transaction commits, and so before a query can find it. The other
	// five seconds are for clocks that differ.
	endedOverlap = 10 * time.Second
)

// endedGrants closes the streams of grants that other processes on the same store have ended.
type endedGrants struct {
	watcher oauth.EndWatcher
	now     func() time.Time
	logger  *slog.Logger
	forget  func(grants []string)            // makes the server read these grants from the store again
	recheck func(tokens []oauth.Fingerprint) // makes the server ask the site about these host tokens again
	since   time.Time                        // when the last successful query began
	failing bool

	mu      sync.Mutex
	servers []guarded
	known   map[string]time.Time // grants whose end this process knows, and since when
}

// add registers a server whose streams poll closes.
func (e *endedGrants) add(server guarded) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers = append(e.servers, server)
}

// learn reports whether the end of the grant is new to this process.
func (e *endedGrants) learn(grant string) (isNew bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.known[grant]; known {
		return false
	}
	e.known[grant] = e.now()
	return true
}

// poll queries once which grants have ended, and closes their streams. It logs the grants that an
// operator has ended by a command, because a command does not write to the log of the service.
// After an outage of the store, the next query covers the time of the outage too.
func (e *endedGrants) poll(ctx context.Context) {
	now := e.now()
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
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
	e.forget(slices.Collect(maps.Keys(ended.Grants)))
	e.mu.Lock()
	servers := slices.Clone(e.servers)
	e.mu.Unlock()
	for _, server := range servers {
		if !server.Idle() {
			server.CloseEnded(ended)
		}
	}
	var tokens []oauth.Fingerprint // of the site, for recheck
	for id, grant := range ended.Grants {
		if !e.learn(id) {
			continue
		}
		switch grant.Reason {
		case oauth.EndedByOperator:
			e.logger.InfoContext(limited, "grant_ended", "grant", id, "reason", string(oauth.EndedByOperator))
			tokens = append(tokens, grant.HostPrint)
		case oauth.EndedByHost, oauth.EndedByHostToken:
			tokens = append(tokens, grant.HostPrint)
		}
	}
	e.recheck(tokens)
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.known, func(_ string, at time.Time) bool { // no query returns such an old end
		return at.Before(now.Add(-2 * endedOverlap))
	})
}
