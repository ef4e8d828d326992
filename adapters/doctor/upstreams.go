package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// UpstreamID begins the IDs of the findings about the upstreams of a gateway.
const UpstreamID = "upstream"

const (
	upstreamCheck = "upstream of " // begins the name of a check in /readyz
	notChecked    = "not-checked"  // the state of an upstream before its first check
	adminTimeout  = 5 * time.Second
	adminBytes    = 256 << 10
)

// readiness is the part of a response of /readyz that describes upstreams.
type readiness struct {
	Status string
	Checks []upstreamReport
}

type upstreamReport struct{ Name, Problem, State, Detail, Remedy string }

// Upstreams reads the states of the upstreams of a gateway from its admin listener at host:port. They are not public, because they name internal
// addresses. It returns one finding for each upstream, or one that is skipped, with the reason.
func Upstreams(ctx context.Context, admin string, endpoint *url.URL) []Finding {
	read, err := readReadiness(ctx, admin)
	if err != nil {
		return []Finding{SkippedUpstreams(fmt.Sprintf("because the admin listener at %s cannot be read (%v): if this server is a pasteport gateway, run doctor on its "+
			"computer, or name the address of its admin listener with --admin-addr", admin, err))}
	}
	var findings []Finding
	isGatewayOfEndpoint := false
	for _, report := range read.Checks {
		resource, isUpstream := strings.CutPrefix(report.Name, upstreamCheck)
		if !isUpstream {
			continue
		}
		found := report.finding(resource)
		switch {
		case strings.TrimSuffix(resource, "/") == strings.TrimSuffix(endpoint.String(), "/"):
			isGatewayOfEndpoint = true
		case found.Status == Failure: // of a neighbour, which does not concern the clients of this URL
			found.Status, found.Breaks = Warning, []string{"the clients of " + resource}
		}
		findings = append(findings, found)
	}
	if !isGatewayOfEndpoint {
		return []Finding{SkippedUpstreams(fmt.Sprintf("because the service with the admin listener at %s has no upstream for this URL: if another one is the gateway, "+
			"name the address of its admin listener with --admin-addr", admin))}
	}
	return findings
}

// SkippedUpstreams returns the finding of a check that is not possible.
func SkippedUpstreams(reason string) Finding {
	return Finding{ID: UpstreamID, Asks: "do the MCP servers behind the gateway work", Status: Skipped, Seen: reason}
}

func (r upstreamReport) finding(resource string) Finding {
	f := Finding{ID: UpstreamID, Asks: "does the MCP server behind " + resource + " work", Status: OK, Seen: r.Detail}
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

func readReadiness(ctx context.Context, admin string) (read readiness, err error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/readyz", http.NoBody)
	if err != nil {
		return read, errors.New("the address is not valid: write host:port")
	}
	request.Host = "localhost"                                                  // accepted on every listen address
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy
	response, err := client.Do(request)
	if err != nil {
		return read, errors.Unwrap(err)
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, adminBytes)).Decode(&read)
	if err != nil || read.Status == "" {
		return read, fmt.Errorf("it answered %s and is no admin listener of pasteport", response.Status)
	}
	return read, nil
}
