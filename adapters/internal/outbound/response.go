package outbound

import (
	"net/http"
	"regexp"
	"strings"
)

// IsJSON reports whether a media type is application/json or application/*+json, with any
// parameters.
func IsJSON(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	subtype, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(mediaType)), "application/")
	return found && (subtype == "json" || len(subtype) > len("+json") && strings.HasSuffix(subtype, "+json"))
}

// Target describes the target of a redirect in our own words, because its text may have a key.
func Target(redirect *http.Response) string {
	to, err := redirect.Location()
	from := redirect.Request.URL
	switch {
	case err != nil:
		return "without an address"
	case to.Host != from.Host:
		return "to another host"
	case to.Scheme != from.Scheme:
		return "to another scheme at the same host"
	case to.Path == from.Path+"/":
		return "to the same address with a slash at the end of its path"
	case to.Path+"/" == from.Path:
		return "to the same address without the slash at the end of its path"
	}
	return "to another path or query there"
}

// HostAdvice tells the operator how to fix a refused host name.
const HostAdvice = "set upstream-host to a name that it allows, or let it allow the host of upstream"

var invalidHost = regexp.MustCompile(`(?i)invalid host( header|:|"|$)`)

// RefusesHost reports whether a response refuses the Host header: 421 from the Python SDK, or 403
// from the Go and TypeScript SDKs.
func RefusesHost(status int, body []byte) bool {
	return status == http.StatusMisdirectedRequest || status == http.StatusForbidden && invalidHost.Match(body)
}
