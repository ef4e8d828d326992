package outbound

import (
	"net/http"
	"regexp"
)

// HostAdvice tells the operator how to fix a refused host name.
const HostAdvice = "set upstream-host to a name that it allows, or let it allow the host of upstream"

var invalidHost = regexp.MustCompile(`(?i)invalid host( header|:|"|$)`)

// RefusesHost reports whether a response refuses the Host header: 421 from the Python SDK, or 403
// from the Go and TypeScript SDKs.
func RefusesHost(status int, body []byte) bool {
	return status == http.StatusMisdirectedRequest || status == http.StatusForbidden && invalidHost.Match(body)
}
