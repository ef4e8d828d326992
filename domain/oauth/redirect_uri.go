package oauth

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RedirectURI is a verified redirect_uri, byte for byte as the client sent it.
type RedirectURI struct{ raw string }

const maxRedirectURILength = 2048

// forbiddenSchemes could run scripts, read files or open other protocols. No setting allows them.
var forbiddenSchemes = []string{"javascript", "data", "vbscript", "file", "blob", "about", "mailto", "ws", "wss", "ftp",
	"filesystem", "view-source"}

// parseRedirectURI accepts https, http to a loopback host, and the given private-use schemes. It
// refuses all else with InvalidRequest.
func parseRedirectURI(raw string, privateSchemes []string) (RedirectURI, error) {
	scheme, rest, found := strings.Cut(raw, ":")
	authority := authorityOf(rest)
	_, realPort := withoutPort(raw)
	switch {
	case raw == "", len(raw) > maxRedirectURILength, !printable(raw), strings.ContainsAny(raw, `#\`):
		return RedirectURI{},
			Refuse(InvalidRequest, "A11", "the redirect_uri is not an absolute URI without a fragment")
	case !found, strings.Contains(authority, "@"), !realPort:
		return RedirectURI{},
			Refuse(InvalidRequest, "A11", "the redirect_uri is relative, names a user or has no possible port")
	case scheme == "https" && HostOf(authority) != "" && !strings.Contains(authority, "%"),
		scheme == "http" && loopbackHost(HostOf(authority)):
		return RedirectURI{raw}, nil
	case slices.Contains(privateSchemes, scheme) && !slices.Contains(forbiddenSchemes, scheme):
		return RedirectURI{raw}, nil
	}
	return RedirectURI{}, Refuse(InvalidRequest, "A14", "the redirect_uri is neither https nor on this computer",
		errors.New(abbreviated(raw)))
}

// mismatch tells the operator, in the log and the trace, which URI a client
// sent and which ones match.
func mismatch(sent string, expected ...string) error {
	var shown []string
	for _, uri := range expected {
		shown = append(shown, abbreviated(uri))
	}
	return fmt.Errorf("%s was sent, expected is %s", abbreviated(sent), strings.Join(shown, " or "))
}

const maxAbbreviated = 100 // bytes, so that the trace has room for both URIs of a mismatch

// abbreviated returns the beginning of a URI, without a user and without the
// query, which may hold secrets.
func abbreviated(uri string) string {
	base, _, hasQuery := strings.Cut(withoutUser(uri), "?")
	if len(base) > maxAbbreviated {
		return base[:maxAbbreviated] + "..."
	}
	if hasQuery {
		return base + "?..."
	}
	return base
}

// String returns the URI as it was sent.
func (u RedirectURI) String() string { return u.raw }

// Host returns host[:port], or the scheme and a colon for a private-use scheme.
func (u RedirectURI) Host() string {
	scheme, rest, _ := strings.Cut(u.raw, ":")
	if u.PrivateScheme() {
		return scheme + ":"
	}
	return authorityOf(rest)
}

// Loopback reports whether the receiver is a program on the person's own computer (RFC 8252 §7.3).
func (u RedirectURI) Loopback() bool {
	rest, found := strings.CutPrefix(u.raw, "http:")
	return found && loopbackHost(HostOf(authorityOf(rest)))
}

// PrivateScheme reports whether an application claims the URI's scheme for itself (RFC 8252 §7.1).
func (u RedirectURI) PrivateScheme() bool {
	return !strings.HasPrefix(u.raw, "https:") && !strings.HasPrefix(u.raw, "http:")
}

// matches reports whether u equals a registered URI byte for byte. Only the port of a loopback URI
// may differ (RFC 8252 §7.3).
func (u RedirectURI) matches(registered RedirectURI) bool {
	if !registered.Loopback() {
		return u.raw == registered.raw
	}
	mine, ok := withoutPort(u.raw)
	theirs, _ := withoutPort(registered.raw)
	return ok && mine == theirs
}

// withoutPort removes the port from the raw URI; ok is false when the port is not a number from 1
// to 65535.
func withoutPort(raw string) (cut string, ok bool) {
	_, rest, _ := strings.Cut(raw, ":")
	authority := authorityOf(rest)
	host, port := splitPort(authority)
	if host == authority {
		return raw, true
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 1 || number > 65535 || len(port) > len("65535") ||
		strings.Trim(port, "0123456789") != "" {
		return "", false
	}
	before, after, _ := strings.Cut(raw, authority)
	return before + host + after, true
}

// authorityOf returns the host:port of "//host:port/path", "" without "//".
func authorityOf(rest string) string {
	rest, found := strings.CutPrefix(rest, "//")
	if !found {
		return ""
	}
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// HostOf returns the host of host:port, an IPv6 address with its brackets.
func HostOf(authority string) string {
	host, _ := splitPort(authority)
	return host
}

// loopbackHost accepts exactly the three spellings that MCP clients register.
func loopbackHost(host string) bool {
	return host == "127.0.0.1" || host == "[::1]" || host == "localhost"
}

// IsLoopbackOrigin reports whether an origin in lower case is on the person's own computer, with
// http or https and on any port.
func IsLoopbackOrigin(origin string) bool {
	scheme, _, _ := strings.Cut(origin, "://")
	authority := hostPort(origin)
	_, realPort := withoutPort(origin)
	return (scheme == "http" || scheme == "https") && origin == scheme+"://"+authority && realPort &&
		loopbackHost(HostOf(authority))
}
