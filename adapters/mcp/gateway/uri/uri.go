// Package uri finds out what MCP servers may take the URI of a resource for, so that rules about
// resources hold for each of them. Readings returns what they may take a URI for, and Forms does
// the same for the pattern of a rule.
package uri

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
)

// defaultPorts has the schemes to which the URL standard of browsers and Node.js gives special
// rules.
var defaultPorts = map[string]string{
	"http":  "80",
	"https": "443",
	"ws":    "80",
	"wss":   "443",
	"ftp":   "21",
	file:    "",
}

const file = "file"

// Readings returns what servers may take a URI for: as a whole, and without query, fragment and
// parameters, each without percent-encoding, repeated slashes and the authority of file:, in lower
// case and in narrow letters. The last one is the shortest. It returns none for a URI of more than
// jsonrpc.MaxURI bytes, and for one that parsers may read in different ways: with control
// characters, white space, a character of \|<>", percent-encoding that is invalid or repeated, a
// prefix that clients strip, a dot segment, or an authority other than a plain host in a scheme of
// defaultPorts.
func Readings(uri string) []string {
	if len(uri) > jsonrpc.MaxURI || strings.ContainsFunc(uri, unicode.IsSpace) ||
		strings.ContainsAny(uri, `\|<>"`) || !hasPlainAuthority(uri) {
		return nil
	}
	whole, ok := unescape(uri)
	if !ok || strings.Contains(whole, `\`) || !hasPlainAuthority(whole) || isIndirect(whole) {
		return nil
	}
	beforeQuery, _ := unescape(cut(uri)) // a part of a valid URI
	texts := []string{whole, beforeQuery, cut(whole), parameters.ReplaceAllString(beforeQuery, ""),
		parameters.ReplaceAllString(cut(whole), "")}
	var readings []string
	for _, text := range slices.Compact(texts) {
		readings = append(readings, normalize(withPath(text))...)
	}
	return readings
}

// Forms returns the pattern of a rule in the forms that match readings: complete, and without query
// and parameters. In patterns, ? is a query only after a backslash or in a template such as {?q}.
// It returns none for a pattern with dot segments, percent-encoding or a prefix that no reading
// has.
func Forms(pattern string) (complete, withoutQuery []string) {
	text, ok := unescape(pattern)
	if !ok || isIndirect(strings.ReplaceAll(text, "?", "x")) {
		return nil, nil
	}
	before := text
	if at := queryOfPattern.FindStringIndex(text); at != nil {
		before = strings.TrimSuffix(text[:at[1]-1], `\`)
	}
	return normalize(text), normalize(parameters.ReplaceAllString(before, ""))
}

var (
	parameters     = regexp.MustCompile(`;[^/]*`)
	queryOfPattern = regexp.MustCompile(`\\\?|\{\?|#`)
	// Also with what Windows or Java ignore.
	dotSegment  = regexp.MustCompile(`(?:^|[:/?#])[. ]*\.[. ]*(?:;[^/?#]*)?(?:$|[/?#])`)
	encoded     = regexp.MustCompile(`%(?:u[0-9a-f]{2})?[0-9a-f]{2}`)
	slashes     = regexp.MustCompile(`/+`)
	hostAndPort = regexp.MustCompile(`^((?:[A-Za-z0-9_{}+*-]+\.)*([A-Za-z0-9_{}+*-]+))(?::([1-9][0-9]*))?$`)

	// wrapper is a prefix that clients strip or open as another URI: url: (Java, Python),
	// local_file: (Python) and netdoc: (Java), which read files, the streams of PHP that take a
	// path, such as phar: and compress.zlib:, and a scheme before another one, such as jar: (Java),
	// view-source: (browsers) and git+file: (Git). The scheme before may be empty.
	wrapper = regexp.MustCompile(`^(?:url:|netdoc:|local[_-]file:|(?:php|phar|zip|rar|glob|compress\.[a-z0-9]+):|` +
		`[a-z][a-z0-9+.-]*\+(?:file|https?|wss?|ftp):|(?:(?:[a-z][a-z0-9+.-]*)?:)+(?:/*file|https?|wss?|ftp):)`)
	numeric = regexp.MustCompile(`^(?:[0-9]+|0[xX][0-9A-Fa-f]*)$`)
)

// unescape returns a text without percent-encoding, in lower case and in narrow letters. It returns
// false for one that decoders read differently.
func unescape(text string) (string, bool) {
	decoded, err := url.PathUnescape(text)
	if err != nil || jsonrpc.Length(decoded, jsonrpc.MaxURI) > jsonrpc.MaxURI ||
		!utf8.ValidString(decoded) || strings.ContainsFunc(decoded, unicode.IsControl) {
		return "", false
	}
	return jsonrpc.Fold(decoded), true
}

// isIndirect reports whether a text without percent-encoding has a dot segment, is still
// encoded, or wraps another URI.
func isIndirect(text string) bool {
	return encoded.MatchString(text) || dotSegment.MatchString(text) || wrapper.MatchString(text)
}

// cut returns what is before the query and the fragment.
func cut(text string) string { return text[:endOf(text, "?#")] }

// endOf returns the index of the first of some characters, or the length of a text without them.
func endOf(text, characters string) int {
	if at := strings.IndexAny(text, characters); at >= 0 {
		return at
	}
	return len(text)
}

// hasPlainAuthority reports whether all parsers find the same host. Only the special schemes have
// hosts that parsers change: without exactly two slashes, browsers find a host, and Python a path.
func hasPlainAuthority(text string) bool {
	scheme, rest, _ := strings.Cut(text, ":")
	defaultPort, isSpecial := defaultPorts[strings.ToLower(scheme)]
	if !isSpecial {
		return true
	}
	isFile := strings.EqualFold(scheme, file)
	if isFile {
		authority, _, found := fileAuthority(rest)
		if !found || authority == "" {
			return true
		}
		rest = "//" + authority
	}
	rest, hasTwoSlashes := strings.CutPrefix(rest, "//")
	if !hasTwoSlashes {
		return false
	}
	parts := hostAndPort.FindStringSubmatch(rest[:endOf(rest, "/?#")])
	if parts == nil || parts[3] != "" && (isFile || parts[3] == defaultPort) {
		return false
	}
	if numeric.MatchString(parts[2]) {
		_, err := netip.ParseAddr(parts[1])
		return err == nil
	}
	return true
}

// fileAuthority divides what follows file: into authority and path.
func fileAuthority(rest string) (authority, path string, found bool) {
	after, found := strings.CutPrefix(rest, "//")
	if !found {
		return "", rest, false
	}
	end := endOf(after, "/?#")
	return after[:end], after[end:], true
}

// withPath adds the path / to a URI of a special scheme that has none.
func withPath(text string) string {
	scheme, rest, _ := strings.Cut(text, ":")
	if _, isSpecial := defaultPorts[scheme]; !isSpecial || scheme == file {
		return text
	}
	rest = strings.TrimLeft(rest, "/")
	if end := endOf(rest, "/?#"); end == len(rest) || rest[end] != '/' {
		rest = rest[:end] + "/" + rest[end:]
	}
	return scheme + "://" + rest
}

// normalize returns a URI or a pattern without repeated slashes and the authority of file:. Another
// authority than localhost could also be the first segment of the path, as some servers take it.
func normalize(text string) []string {
	scheme, rest, _ := strings.Cut(text, ":")
	_, isSpecial := defaultPorts[scheme]
	switch {
	case scheme == file:
		inPath := "file://" + slashes.ReplaceAllString("/"+rest, "/")
		if authority, path, _ := fileAuthority(rest); authority != "" {
			return []string{inPath, "file://" + slashes.ReplaceAllString("/"+path, "/")}
		}
		return []string{inPath}
	case isSpecial:
		rest = slashes.ReplaceAllString(strings.TrimLeft(rest, "/"), "/")
		if !strings.Contains(rest, "/") && !strings.HasSuffix(rest, "*") {
			rest += "/"
		}
		return []string{scheme + "://" + rest}
	case strings.HasPrefix(rest, "//"):
		return []string{scheme + "://" + slashes.ReplaceAllString(rest[2:], "/")}
	case strings.HasPrefix(rest, "/"):
		return []string{scheme + "://" + slashes.ReplaceAllString(rest, "/")}
	}
	return []string{text}
}
