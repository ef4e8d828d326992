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

// agreeOnSecret fails if the store was used with another server secret.
func (a *OAuthServer) agreeOnSecret() error {
	err := a.server.AgreeOnSecret(context.Background())
	if errors.Is(err, oauth.ErrOtherSecret) {
		return fmt.Errorf("%w, so this process cannot unseal what is in it: restore the secret that was backed "+
			"up with it, or copy the file of server-secret from another replica; if it is lost, \"pasteport keys "+
			"rotate --forget-old\" generates another one, and clients connect again", err)
	}
	return err
}

// flushUses writes the last uses of grants.
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
	endedInterval = time.Second / 2 // of the queries for ended grants; streams close within a second
	// endedOverlap is how much each query overlaps the one before. A grant has the time of its end
	// before the transaction commits: a transaction waits up to five seconds, and the clocks of the
	// machines may differ by the rest.
	endedOverlap = 10 * time.Second
)

// endedGrants closes the streams of grants that other processes on the same store have ended.
type endedGrants struct {
	watcher oauth.EndWatcher
	now     func() time.Time
	logger  *slog.Logger
	forget  func(grants []string)            // that the server trusts
	recheck func(tokens []oauth.Fingerprint) // makes the site verify these tokens of its own again
	since   time.Time                        // of the last successful query
	failing bool

	mu      sync.Mutex
	servers []guarded
	known   map[string]time.Time // grants whose end this process has logged, and when
}

// add registers a server.
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

// close queries the ended grants once, closes their streams, and logs those that an operator has
// ended by a command, whose own output the log of the service does not have. After an outage of the
// store the next query begins before the outage.
func (e *endedGrants) close(ctx context.Context) {
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
	var tokens []oauth.Fingerprint // of the site, to check again in headers
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
	maps.DeleteFunc(e.known, func(_ string, at time.Time) bool { // which no query returns any more
		return at.Before(now.Add(-2 * endedOverlap))
	})
}
