package server

import (
	"context"
	"net/url"

	"github.com/pasteport/pasteport/adapters/http/admin"
	"github.com/pasteport/pasteport/adapters/http/telemetry"
	"github.com/pasteport/pasteport/bootstrap/server/upstreams"
)

// UpstreamStatus is the state of an upstream, with the cause and the remedy if it does not work.
type UpstreamStatus = upstreams.Status

// CheckUpstreams checks every upstream now. Serve does so in the background (U31).
func (s *Service) CheckUpstreams(ctx context.Context) []UpstreamStatus { return s.upstreams.Check(ctx) }

func (s *Service) watchUpstreams(config Config) *upstreams.Watch {
	var all []upstreams.Upstream
	for i, address := range config.Gateway.Upstreams {
		all = append(all, upstreams.Upstream{Name: address.name(), Resource: s.Authz.Resources()[i].Resource.String(), Gateway: s.servers[i]})
	}
	return upstreams.New(all, config.CheckLimit, config.Logger)
}

// name returns the address without its query, which may have a key, or the command without its arguments and environment.
func (u UpstreamAddress) name() string {
	if u.IsProgram() {
		return "stdio: " + u.Program.Command
	}
	address, err := url.Parse(u.URL)
	if err != nil || address.Scheme == "" { // {field} and a path
		return u.URL
	}
	return (&url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}).String()
}

// upstreamChecks are tolerated, because the authorization server and the other upstreams still answer.
func (s *Service) upstreamChecks() (checks []admin.Check) {
	for i, report := range s.upstreams.Statuses() {
		checks = append(checks, admin.Check{
			Name: "upstream of " + report.Resource, Tolerated: true, Run: func(context.Context) error { return s.upstreams.Statuses()[i].Err() },
			Describe: func() admin.Description { return describe(s.upstreams.Statuses()[i]) },
		})
	}
	return checks
}

func describe(r UpstreamStatus) admin.Description {
	return admin.Description{State: string(r.State.State), Detail: r.State.Cause(), Remedy: r.State.Remedy()}
}

// upstreamResults are for the admin page.
func (s *Service) upstreamResults() (results []admin.Upstream) {
	for _, r := range s.upstreams.Statuses() {
		results = append(results, admin.Upstream{Name: r.Name, Resource: r.Resource, Problem: r.Err(), Description: describe(r)})
	}
	return results
}

// upstreamGauges leaves out upstreams of which nothing is known.
func (s *Service) upstreamGauges() (gauges []telemetry.UpstreamGauge) {
	for _, r := range s.upstreams.Statuses() {
		if r.State.IsKnown() {
			gauges = append(gauges, telemetry.UpstreamGauge{Resource: r.Resource, State: string(r.State.State), Up: r.Err() == nil})
		}
	}
	return gauges
}
