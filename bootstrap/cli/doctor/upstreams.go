package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/adapters/readiness"
)

// UpstreamID begins the IDs of the findings about the upstreams of a gateway.
const UpstreamID = "upstream"

const notChecked = "not-checked" // the state of an upstream before its first check

// Upstreams reads the states of the upstreams of a gateway from its admin listener at host:port.
// They are not public, because they name internal addresses. It returns one finding for each
// upstream, or one that is skipped, with the reason.
func Upstreams(ctx context.Context, admin string, endpoint *url.URL) []Finding {
	read, err := readiness.Read(ctx, admin)
	if connection := new(url.Error); errors.As(err, &connection) {
		err = connection.Err // without the URL, which the finding has
	}
	if err != nil {
		return []Finding{SkippedUpstreams(fmt.Sprintf("because the admin listener at %s cannot be read (%v): if this "+
			"server is a pasteport gateway, run doctor on its "+
			"computer, or name the address of its admin listener with --admin-addr", admin, err))}
	}
	var findings []Finding
	isGatewayOfEndpoint := false
	for _, check := range read.Checks {
		resource, isUpstream := strings.CutPrefix(check.Name, readiness.UpstreamOf)
		if !isUpstream {
			continue
		}
		found := findingOf(check, resource)
		switch {
		case strings.TrimSuffix(resource, "/") == strings.TrimSuffix(endpoint.String(), "/"):
			isGatewayOfEndpoint = true
		case found.Status == Failure: // of a neighbour, which does not concern the clients of this URL
			found.Status, found.Breaks = Warning, []string{"the clients of " + resource}
		}
		findings = append(findings, found)
	}
	if !isGatewayOfEndpoint {
		return []Finding{SkippedUpstreams(fmt.Sprintf("because the service with the admin listener at %s has no "+
			"upstream for this URL: if another one is the gateway, "+
			"name the address of its admin listener with --admin-addr", admin))}
	}
	return findings
}

// SkippedUpstreams returns the finding of a check that is not possible.
func SkippedUpstreams(reason string) Finding {
	return Finding{
		ID:     UpstreamID,
		Asks:   "do the MCP servers behind the gateway work",
		Status: Skipped,
		Seen:   reason,
	}
}

func findingOf(r readiness.Result, resource string) Finding {
	f := Finding{
		ID:     UpstreamID,
		Asks:   "does the MCP server behind " + resource + " work",
		Status: OK,
		Seen:   r.Detail,
	}
	if at, err := url.Parse(resource); err == nil {
		f.ID += " " + at.EscapedPath()
	}
	switch {
	case r.Problem != "":
		f.Status, f.Seen, f.Mend = Failure, r.Problem, r.Remedy
		f.Why, f.Breaks = "people cannot connect to it, or the calls of their clients fail", everyClient
		if f.Mend == "" {
			f.Mend = "read the log of the gateway and of the MCP server"
		}
	case r.Remedy != "":
		f.Status, f.Why, f.Breaks, f.Mend = Warning, "people may be unable to connect", everyClient, r.Remedy
	case r.State == notChecked:
		f.Status, f.Seen = Skipped, "because the gateway has not checked it yet: run doctor again"
	}
	return f
}
