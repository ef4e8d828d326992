// Package uri reads URIs as text, because OAuth compares them byte for byte, and a parser may see
// another host than the client does.
package uri

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Printable reports whether s has only the bytes 0x21-0x7E.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e })
}

// dots decodes dots as browsers do before they resolve dot segments.
var dots = strings.NewReplacer("%2e", ".", "%2E", ".")

// HasDotSegment reports whether the path has a "." or ".." segment, which a browser would resolve.
func HasDotSegment(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		segment = dots.Replace(segment)
		return segment == "." || segment == ".."
	})
}

// Authority returns host:port of a URI, with a user if it names one. It returns "" if the URI has
// no "//" behind its scheme.
func Authority(uri string) string {
	_, rest, _ := strings.Cut(uri, ":")
	rest, found := strings.CutPrefix(rest, "//")
	if !found {
		return ""
	}
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// SplitPort splits host:port, where the host may be an IPv6 address with its brackets.
func SplitPort(authority string) (host, port string) {
	colon := strings.LastIndexByte(authority, ':')
	if colon < 0 || strings.HasSuffix(authority, "]") {
		return authority, ""
	}
	return authority[:colon], authority[colon+1:]
}

// HostOf returns the host of host:port, an IPv6 address with its brackets.
func HostOf(authority string) string {
	host, _ := SplitPort(authority)
	return host
}

// SplitOrigin returns the origin of a URL and its path without a trailing slash.
func SplitOrigin(uri string) (origin, path string) {
	scheme, rest, _ := strings.Cut(uri, "://")
	authority, path, found := strings.Cut(rest, "/")
	if found {
		path = "/" + path
	}
	return scheme + "://" + authority, strings.TrimSuffix(path, "/")
}

// IsLoopbackHost accepts exactly the three spellings that MCP clients register.
func IsLoopbackHost(host string) bool {
	return host == "127.0.0.1" || host == "[::1]" || host == "localhost"
}

// IsLoopback reports whether the host of a URI is this computer.
func IsLoopback(uri string) bool { return IsLoopbackHost(HostOf(Authority(uri))) }

// IsLoopbackOrigin reports whether an origin in lower case is on the person's own computer, with
// http or https and on any port.
func IsLoopbackOrigin(origin string) bool {
	scheme, _, _ := strings.Cut(origin, "://")
	_, realPort := WithoutPort(origin)
	return (scheme == "http" || scheme == "https") && origin == scheme+"://"+Authority(origin) && realPort &&
		IsLoopback(origin)
}

// WithoutPort removes the port, if there is one; ok is false if it is not a number from 1 to 65535.
func WithoutPort(uri string) (cut string, ok bool) {
	authority := Authority(uri)
	host, port := SplitPort(authority)
	if host == authority {
		return uri, true
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 1 || number > 65535 || len(port) > len("65535") ||
		strings.Trim(port, "0123456789") != "" {
		return "", false
	}
	before, after, _ := strings.Cut(uri, authority)
	return before + host + after, true
}

// WithoutUser cuts the user and password out, so that an error may quote the URI.
func WithoutUser(uri string) string {
	at := strings.LastIndexByte(uri, '@')
	if at < 0 {
		return uri
	}
	before, _, found := strings.Cut(uri[:at], "//")
	if !found {
		return "…" + uri[at:]
	}
	return before + "//…" + uri[at:]
}

const maxAbbreviated = 100 // bytes; the trace has room for two URIs of this length

// Abbreviated returns the beginning of a URI, without a user and without the query, which may hold
// secrets.
func Abbreviated(uri string) string {
	base, _, hasQuery := strings.Cut(WithoutUser(uri), "?")
	if len(base) > maxAbbreviated {
		return base[:maxAbbreviated] + "..."
	}
	if hasQuery {
		return base + "?..."
	}
	return base
}

// Mismatch tells the operator, in the log and the trace, which URI a client sent and which ones
// match.
func Mismatch(sent string, expected ...string) error {
	var shown []string
	for _, uri := range expected {
		shown = append(shown, Abbreviated(uri))
	}
	return fmt.Errorf("%s was sent, expected is %s", Abbreviated(sent), strings.Join(shown, " or "))
}
