package credential

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// addressForm is the only form of an address: no user, query, fragment, backslash, space, or
// percent-encoding, which two parsers could read differently.
var addressForm = regexp.MustCompile(
	`^(https?)://([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)(?::([0-9]{1,5}))?((?:/[A-Za-z0-9._~-]+)*)/?$`)

var (
	dotSegment  = regexp.MustCompile(`(^|/)\.{1,2}(/|$)`)
	hostPattern = regexp.MustCompile(
		`^(?:http://)?(?:\*\.[a-z0-9_-]+\.)?[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?(?::[0-9]{1,5})?$`)
)

const (
	secure = "https://"
	plain  = "http://"
)

// parseAddress returns the URL that a person has entered, with its scheme, a host in lower case,
// and no slash at its end. The host must be one of the listed ones, so that people cannot aim the
// server at other addresses (SSRF).
func parseAddress(entered string, hosts []string) (string, Reason) {
	if !strings.Contains(entered, "://") {
		entered = secure + entered
	}
	scheme, rest, _ := strings.Cut(entered, "://")
	authority, path, hasPath := strings.Cut(rest, "/")
	if hasPath {
		path = "/" + path
	}
	address := strings.ToLower(scheme+"://"+authority) + path
	parts := addressForm.FindStringSubmatch(address)
	if parts == nil || dotSegment.MatchString(parts[4]) {
		return "", Malformed
	}
	origin := parts[1] + "://" + parts[2]
	if parts[3] != "" && !(parts[1] == "https" && parts[3] == "443") && !(parts[1] == "http" && parts[3] == "80") {
		origin += ":" + parts[3]
	}
	if !slices.ContainsFunc(hosts, func(listed string) bool { return covers(strings.ToLower(listed), origin) }) {
		return "", Elsewhere
	}
	return origin + parts[4], ""
}

// covers reports whether a listed host is that of an origin.
func covers(listed, origin string) bool {
	if !strings.HasPrefix(listed, plain) {
		listed = secure + strings.TrimSuffix(listed, ":443")
	} else {
		listed = strings.TrimSuffix(listed, ":80")
	}
	scheme, host, _ := strings.Cut(listed, "://")
	domain, isWildcard := strings.CutPrefix(host, "*.")
	if !isWildcard {
		return listed == origin
	}
	of, found := strings.CutPrefix(origin, scheme+"://")
	sub, isSub := strings.CutSuffix(of, "."+domain)
	return found && isSub && sub != ""
}

func checkHostPattern(listed string) error {
	if !hostPattern.MatchString(strings.ToLower(listed)) {
		return errors.New(
			`a host is not valid: write it like cms.example.com, cms.example.com:8443, *.example.com or ` +
				`http://127.0.0.1:9000`)
	}
	return nil
}
