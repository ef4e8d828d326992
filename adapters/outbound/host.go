package outbound

import (
	"net/http"
	"regexp"
)

// MendHost is what to do when a server of the site refuses the host name that it is asked under.
const MendHost = "set upstream-host to a name that it allows, or let it allow the host of upstream"

var invalidHost = regexp.MustCompile(`(?i)invalid host( header|:|"|$)`)

// RefusesHost reports whether an answer is about the host name: 421, which the Python SDK sends, or the 403 of the Go and TypeScript SDKs.
func RefusesHost(status int, body []byte) bool {
	return status == http.StatusMisdirectedRequest || status == http.StatusForbidden && invalidHost.Match(body)
}
