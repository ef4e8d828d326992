package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/adapters/diagnosis/admin"
	"github.com/pasteport/pasteport/bootstrap/service"
)

const (
	upstreamID   = "upstream"    // begins the IDs of the findings about the upstreams of a gateway
	stateUnknown = "not-checked" // the state of an upstream before its first check
)

// fromInside reads what the admin listener at host:port knows: the proxy that trusted-proxies
// lacks, and the states of the upstreams of a gateway. They are not public, because they name
// internal addresses. It returns one finding for each upstream, or one that is skipped, with the
// reason.
func fromInside(ctx context.Context, address string, endpoint *url.URL) []finding {
	if address == "" || address == service.AdminOff {
		return skippedUpstreams("because admin-addr is off: give the gateway an admin listener, for example on %s",
			service.DefaultAdminAddr)
	}
	read, err := admin.ReadReport(ctx, address)
	if connection := new(url.Error); errors.As(err, &connection) {
		err = connection.Err // without the URL, which the finding has
	}
	if err != nil {
		return skippedUpstreams("because the admin listener at %s cannot be read (%v): if this server is a pasteport "+
			"gateway, run doctor on its computer, or name the address of its admin listener with --admin-addr",
			address, err)
	}
	var findings, proxies []finding
	isGatewayOfEndpoint := false
	for _, check := range read.Checks {
		if check.Name == admin.ProxiesCheck && check.Remedy != "" {
			proxies = []finding{{
				ID:     "trusted.proxies",
				Asks:   "does trusted-proxies list the proxy",
				Status: warning,
				Seen:   check.Detail,
				Why:    "Without it, all people share the limits of one address.",
				Mend:   check.Remedy,
			}}
		}
		resource, isUpstream := strings.CutPrefix(check.Name, admin.UpstreamCheckPrefix)
		if !isUpstream {
			continue
		}
		found := findingOf(check, resource)
		switch {
		case strings.TrimSuffix(resource, "/") == strings.TrimSuffix(endpoint.String(), "/"):
			isGatewayOfEndpoint = true
		case found.Status == failure: // of a neighbour, which does not concern the clients of this URL
			found.Status = warning
		}
		findings = append(findings, found)
	}
	if !isGatewayOfEndpoint {
		findings = skippedUpstreams("because the service with the admin listener at %s has no upstream for this "+
			"URL: if another one is the gateway, name the address of its admin listener with --admin-addr", address)
	}
	return append(findings, proxies...)
}

// skippedUpstreams returns the finding of a check that is not possible.
func skippedUpstreams(reason string, values ...any) []finding {
	return []finding{{
		ID:     upstreamID,
		Asks:   "do the MCP servers behind the gateway work",
		Status: skipped,
		Seen:   fmt.Sprintf(reason, values...),
	}}
}

func findingOf(r admin.Result, resource string) finding {
	f := finding{
		ID:     upstreamID,
		Asks:   "does the MCP server behind " + resource + " work",
		Status: statusOK,
		Seen:   r.Detail,
	}
	if at, err := url.Parse(resource); err == nil {
		f.ID += " " + at.EscapedPath()
	}
	switch {
	case r.Problem != "":
		f.Status, f.Seen = failure, r.Problem
		f.Why = "people cannot connect to it, or the calls of their clients fail"
		f.Mend = cmp.Or(r.Remedy, "read the log of the gateway and of the MCP server")
	case r.Remedy != "":
		f.Status, f.Why, f.Mend = warning, "people may be unable to connect", r.Remedy
	case r.State == stateUnknown:
		f.Status, f.Seen = skipped, "because the gateway has not checked it yet: run doctor again"
	}
	return f
}
