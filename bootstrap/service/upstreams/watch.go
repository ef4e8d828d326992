// Package upstreams checks the upstreams of a gateway at startup and while it runs. A Watch
// checks each at its own intervals, logs what changes, and returns a Status of each, also for the
// admin listener and the metrics. The state itself stays with the gateway, whose consent page needs
// it.
package upstreams

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/admin"
	"github.com/pasteport/pasteport/adapters/http/telemetry"
	"github.com/pasteport/pasteport/bootstrap"
)

// limit is the time limit of a check. A server that takes longer is slow.
const limit = 5 * time.Second

// The intervals of the checks, to which up to a tenth is added at random. A server that is down may
// name a longer time until the next check. A failed call causes a check at once, but not twice
// within the shortest interval.
const (
	interval         = time.Minute
	outageInterval   = 5 * time.Second
	shortestInterval = time.Second
)

// Watch checks upstreams until it is closed.
type Watch struct {
	all    []*Upstream
	logger *slog.Logger

	running context.Context // of the background work
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// New returns a watch of the upstreams.
func New(all []*Upstream, logger *slog.Logger) *Watch {
	w := &Watch{all: all, logger: logger}
	w.running, w.cancel = context.WithCancel(context.Background())
	return w
}

// Start begins the checks in the background, each upstream at its own intervals, and calls report
// after the first check of all unless it is nil.
func (w *Watch) Start(report func([]Status)) {
	var first sync.WaitGroup
	for _, u := range w.all {
		first.Add(1)
		w.work.Go(func() { w.follow(u, first.Done) })
	}
	w.work.Go(func() {
		first.Wait()
		if w.running.Err() == nil && report != nil {
			report(w.Statuses())
		}
	})
}

// follow checks the upstream at its intervals. It calls checked after the first check.
func (w *Watch) follow(u *Upstream, checked func()) {
	found := w.check(w.running, u)
	checked()
	var asked time.Time // when a failed call last caused a check
	for {
		pause := next(found)
		failed := u.Gateway.UpstreamFailed()
		if found.IsProblem() { // failed calls show nothing new: keep to the intervals
			failed = nil
		}
		select {
		case <-w.running.Done():
			return
		case <-time.After(pause + rand.N(pause/10)): //nolint:gosec // no secret
		case <-failed:
			select {
			case <-w.running.Done():
				return
			case <-time.After(shortestInterval - time.Since(asked)):
			}
			asked = time.Now()
		}
		found = w.check(w.running, u)
	}
}

// next returns the time until the check after one with this result.
func next(found bootstrap.UpstreamState) time.Duration {
	if found.State == bootstrap.UpstreamDown {
		return max(found.RetryAfter, outageInterval)
	}
	return interval
}

// Check checks every upstream now and returns the statuses in their order.
func (w *Watch) Check(ctx context.Context) []Status {
	var checks sync.WaitGroup
	for _, u := range w.all {
		checks.Go(func() { w.check(ctx, u) })
	}
	checks.Wait()
	return w.Statuses()
}

// check checks the upstream, and logs a new state or a new cause, but an outage only once.
func (w *Watch) check(ctx context.Context, u *Upstream) bootstrap.UpstreamState {
	u.checking.Lock()
	defer u.checking.Unlock()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	before, found := u.last, u.Gateway.CheckUpstream(limited)
	u.last = found
	switch {
	case found.State == before.State && (found.Cause == before.Cause || found.State == bootstrap.UpstreamDown):
	case found.IsProblem():
		w.logger.WarnContext(ctx, "an upstream does not work", "upstream", u.Name, "state", string(found.State),
			"cause", found.Cause, "remedy", found.Remedy, "rule", "U31")
	case before.IsProblem():
		w.logger.InfoContext(ctx, "an upstream works again", "upstream", u.Name, "state", string(found.State),
			"rule", "U31")
	}
	return found
}

// Statuses returns the states of the last checks.
func (w *Watch) Statuses() []Status {
	statuses := make([]Status, len(w.all))
	for i, u := range w.all {
		statuses[i] = u.status()
	}
	return statuses
}

// Close ends the background work and waits for its end.
func (w *Watch) Close() {
	w.cancel()
	w.work.Wait()
}

// Upstream is one MCP server behind a gateway.
type Upstream struct {
	Name     string // for the output and the log, without the path of the address, which may have a key
	Address  string // for the operator on this computer, without its query
	Resource string // the URL that clients call
	Gateway  *bootstrap.MCPServer

	checking sync.Mutex              // one check at a time, so that each change is logged once
	last     bootstrap.UpstreamState // of the last check, as it was logged
}

// Status is the state of an upstream.
type Status struct {
	*Upstream
	State   bootstrap.UpstreamState // of the last check
	Problem error                   // that the check or calls have shown; nil for an upstream that works
	brief   string                  // the problem for readers on other computers: a cause can have an internal address
}

func (u *Upstream) status() Status {
	s := Status{Upstream: u, State: u.Gateway.UpstreamState()}
	var causes, brief []string
	if s.State.IsProblem() {
		causes, brief = append(causes, s.State.Cause), append(brief, string(s.State.State))
	}
	if calls := u.Gateway.Health(); calls != nil {
		causes, brief = append(causes, calls.Error()), append(brief, "calls fail")
	}
	if s.brief = strings.Join(brief, "; "); len(causes) > 0 {
		s.Problem = errors.New(strings.Join(causes, "; "))
	}
	return s
}

func (s Status) describe() admin.Description {
	return admin.Description{
		State:  string(s.State.State),
		Detail: s.State.Cause,
		Remedy: s.State.Remedy,
		Brief:  s.brief,
	}
}

// Checks returns readiness checks, which may fail, because the rest of the service still answers.
func (w *Watch) Checks() (checks []admin.Check) {
	for _, u := range w.all {
		checks = append(checks, admin.Check{
			Name:      admin.UpstreamCheckPrefix + u.Resource,
			Tolerated: true,
			Run: func(context.Context) (admin.Description, error) {
				s := u.status()
				return s.describe(), s.Problem
			},
		})
	}
	return checks
}

// Results returns the statuses for the admin page, which only this computer can read.
func (w *Watch) Results() (results []admin.Upstream) {
	for _, s := range w.Statuses() {
		results = append(results, admin.Upstream{
			Name:        s.Address,
			Resource:    s.Resource,
			Problem:     s.Problem,
			Description: s.describe(),
		})
	}
	return results
}

// Gauges returns the statuses for the metrics, without upstreams whose state is unknown yet.
func (w *Watch) Gauges() (gauges []telemetry.UpstreamGauge) {
	for _, s := range w.Statuses() {
		if s.State != bootstrap.UpstreamUnknown {
			gauges = append(gauges,
				telemetry.UpstreamGauge{Resource: s.Resource, State: string(s.State.State), Up: s.Problem == nil})
		}
	}
	return gauges
}
