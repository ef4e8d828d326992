package upstreams

import (
	"context"
	"errors"
	"strings"

	"github.com/pasteport/pasteport/adapters/diagnosis/admin"
	"github.com/pasteport/pasteport/adapters/http/telemetry"
	"github.com/pasteport/pasteport/bootstrap"
)

// Upstream is one MCP server behind a gateway.
type Upstream struct {
	Name     string // for the output and the log, without the path of the address, which may have a key
	Address  string // for the operator on this computer, without its query
	Resource string // the URL that clients call
	Gateway  *bootstrap.MCPServer
}

// Status is the state of an upstream.
type Status struct {
	Upstream
	State bootstrap.UpstreamState
	Calls error // why it gets no calls; nil while it does
}

// Status returns the state of the last check, and whether the upstream gets calls.
func (u Upstream) Status() Status {
	return Status{u, u.Gateway.UpstreamState(), u.Gateway.Health()}
}

// Err returns the causes of a problem that a check or calls have shown; nil for an upstream that
// works.
func (s Status) Err() error {
	if causes := s.causes(s.State.Cause, s.Calls); causes != "" {
		return errors.New(causes)
	}
	return nil
}

var errCalls = errors.New("calls fail")

func (s Status) causes(ofCheck string, ofCalls error) string {
	var causes []string
	if s.State.IsProblem() {
		causes = append(causes, ofCheck)
	}
	if s.Calls != nil {
		causes = append(causes, ofCalls.Error())
	}
	return strings.Join(causes, "; ")
}

// describe has the Brief for readers on other computers: a cause can have an address of the internal
// network.
func (s Status) describe() admin.Description {
	return admin.Description{
		State:  string(s.State.State),
		Detail: s.State.Cause,
		Remedy: s.State.Remedy,
		Brief:  s.causes(string(s.State.State), errCalls),
	}
}

// Checks are tolerated, because the authorization server and the other upstreams still answer.
func (w *Watch) Checks() (checks []admin.Check) {
	for _, u := range w.all {
		checks = append(checks, admin.Check{
			Name:      admin.UpstreamCheckPrefix + u.Resource,
			Tolerated: true,
			Run: func(context.Context) error {
				return u.Status().Err()
			},
			Describe: func() admin.Description { return u.Status().describe() },
		})
	}
	return checks
}

// Results are for the admin page, which only this computer can read.
func (w *Watch) Results() (results []admin.Upstream) {
	for _, s := range w.Statuses() {
		results = append(results, admin.Upstream{
			Name:        s.Address,
			Resource:    s.Resource,
			Problem:     s.Err(),
			Description: s.describe(),
		})
	}
	return results
}

// Gauges leave out upstreams of which nothing is known.
func (w *Watch) Gauges() (gauges []telemetry.UpstreamGauge) {
	for _, s := range w.Statuses() {
		if s.State != bootstrap.UpstreamUnknown {
			gauges = append(gauges,
				telemetry.UpstreamGauge{Resource: s.Resource, State: string(s.State.State), Up: s.Err() == nil})
		}
	}
	return gauges
}
