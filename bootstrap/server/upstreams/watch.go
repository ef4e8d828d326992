// Package upstreams checks the upstreams of a gateway at the start and while it runs. A Watch checks all of them at the same time, logs what changes,
// and returns a Status of each. The state itself stays with the gateway, whose consent page needs it.
package upstreams

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pasteport/pasteport/bootstrap"
)

// DefaultLimit is the time limit of a check. A server that takes longer is slow.
const DefaultLimit = 5 * time.Second

// The intervals of the checks, to which up to a tenth is added at random. In an outage the first one is short, because an upstream that starts with the
// gateway is reachable soon; each further one is twice as long, up to the longest.
const (
	interval              = time.Minute
	firstOutageInterval   = time.Second
	longestOutageInterval = 10 * time.Second
)

// Upstream is one MCP server behind a gateway.
type Upstream struct {
	Name     string // for the operator, without secrets
	Resource string // the URL that clients call
	Gateway  *bootstrap.MCPServer
}

// Status is the state of an upstream.
type Status struct {
	Name, Resource string
	State          bootstrap.UpstreamState
	Calls          error // why it gets no calls; nil while it does
}

// Status returns the state of the last check, and whether the upstream gets calls.
func (u Upstream) Status() Status {
	return Status{u.Name, u.Resource, u.Gateway.UpstreamState(), u.Gateway.Health()}
}

// Err returns the causes of a problem that a check or calls have shown; nil for an upstream that works.
func (s Status) Err() error {
	var causes []string
	if !s.State.Works() {
		causes = append(causes, s.State.Cause())
	}
	if s.Calls != nil {
		causes = append(causes, s.Calls.Error())
	}
	if len(causes) == 0 {
		return nil
	}
	return errors.New(strings.Join(causes, "; "))
}

// Watch checks upstreams until it is closed.
type Watch struct {
	all    []Upstream
	limit  time.Duration
	logger *slog.Logger

	checking sync.Mutex
	started  sync.Once
	stop     context.CancelFunc
	done     chan struct{} // closed when the background work has ended
}

// New returns a watch whose checks have the time limit; 0 for DefaultLimit.
func New(all []Upstream, limit time.Duration, logger *slog.Logger) *Watch {
	if limit == 0 {
		limit = DefaultLimit
	}
	return &Watch{all: all, limit: limit, logger: logger}
}

// Start begins the checks in the background, and calls report after the first one unless it is nil.
func (w *Watch) Start(report func([]Status)) {
	if len(w.all) == 0 {
		return
	}
	w.started.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		w.stop, w.done = cancel, make(chan struct{})
		go w.run(ctx, report)
	})
}

func (w *Watch) run(ctx context.Context, report func([]Status)) {
	defer close(w.done)
	statuses := w.Check(ctx)
	if ctx.Err() == nil && report != nil {
		report(statuses)
	}
	for pause := next(statuses, interval); ; pause = next(statuses, pause) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause + rand.N(pause/10)): //nolint:gosec // no secret
		}
		statuses = w.Check(ctx)
	}
}

// next returns the interval that follows the last one.
func next(statuses []Status, last time.Duration) time.Duration {
	switch {
	case !slices.ContainsFunc(statuses, func(s Status) bool { return s.State.IsOutage() }):
		return interval
	case last == interval:
		return firstOutageInterval
	}
	return min(2*last, longestOutageInterval)
}

// Check checks every upstream now and returns the statuses in their order.
func (w *Watch) Check(ctx context.Context) []Status {
	w.checking.Lock()
	defer w.checking.Unlock()
	var checks sync.WaitGroup
	for _, u := range w.all {
		checks.Go(func() { w.check(ctx, u) })
	}
	checks.Wait()
	return w.Statuses()
}

// check logs only a change of the state.
func (w *Watch) check(ctx context.Context, u Upstream) {
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	before := u.Gateway.UpstreamState()
	found := u.Gateway.CheckUpstream(limited)
	switch {
	case found.State == before.State:
	case !found.Works():
		w.logger.WarnContext(ctx, "an upstream does not work", "upstream", u.Name, "state", string(found.State), "cause", found.Cause(), "remedy", found.Remedy(), "rule", "U31")
	case !before.Works():
		w.logger.InfoContext(ctx, "an upstream works again", "upstream", u.Name, "state", string(found.State), "rule", "U31")
	}
}

// Statuses returns the states of the last checks.
func (w *Watch) Statuses() []Status {
	statuses := make([]Status, len(w.all))
	for i, u := range w.all {
		statuses[i] = u.Status()
	}
	return statuses
}

// Close ends the background work and waits for its end.
func (w *Watch) Close() {
	w.started.Do(func() {}) // Start does nothing from now on
	if w.stop == nil {
		return
	}
	w.stop()
	<-w.done
}
