package access

import (
	"regexp"
	"strings"
)

// toolName matches the names that MCP recommends, which all servers compare alike.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)

// FoldName returns the name of a tool or prompt in the form in which it is compared, and false for
// one that no caller may use, because servers may take it for another one.
func FoldName(name string) (folded string, ok bool) {
	return strings.ToLower(name), toolName.MatchString(name)
}

// maxURI is the maximum length of a URI in bytes.
const maxURI = 8 << 10

var (
	// unusual matches white space, control and other characters that no URI has, percent-encoding,
	// backslashes, dot segments, and the beginning of another URI.
	unusual = regexp.MustCompile("[^!-~]|[%\\\\<>\"|^`]|(?:^|[:/?#=])\\.\\.?(?:[/?#;&]|$)|" +
		`:(?i:file|https?|wss?|ftp):|:[^:/]*:/?/`)
	// plainHost matches what follows the scheme of a web page: a host that parsers read alike.
	plainHost = regexp.MustCompile(`^//[a-z0-9_{}+*.-]*[a-z0-9_{}+*-](?::[1-9][0-9]*)?(?:[/?#]|$)`)
	// onWeb are schemes to which browsers and Node.js give special rules (WHATWG URL).
	onWeb       = regexp.MustCompile(`^(?:https?|wss?|ftp)$`)
	defaultPort = regexp.MustCompile(`^//[^/?#]*:(?:80|443|21)(?:[/?#]|$)`)
)

// FoldURI returns the URI of a resource, or a template, in the form in which it is compared, and
// false for one that no caller may use, because servers may take it for another one.
func FoldURI(uri string) (folded string, ok bool) {
	if uri == "" || len(uri) > maxURI || unusual.MatchString(uri) {
		return "", false
	}
	folded = strings.ToLower(uri)
	scheme, rest, found := strings.Cut(folded, ":")
	switch {
	case !found:
		return folded, true
	case onWeb.MatchString(scheme):
		return folded, plainHost.MatchString(rest) && !defaultPort.MatchString(rest) && !hasEmptySegment(rest[2:])
	case strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "//"): // file:/a is file:///a (RFC 8089)
		rest = "//" + rest
	case scheme == "file" && !strings.HasPrefix(rest, "//"):
		return "", false
	}
	if scheme == "file" {
		rest = strings.Replace(rest, "//localhost/", "///", 1)
	}
	authority, hierarchical := strings.CutPrefix(rest, "//")
	userEnd := strings.IndexAny(authority, "/?#")
	if userEnd < 0 {
		userEnd = len(authority)
	}
	if hierarchical && (strings.Contains(authority[:userEnd], "@") || hasEmptySegment(authority)) {
		return "", false
	}
	return scheme + ":" + rest, true
}

// WithoutQuery returns a URI without query and fragment.
func WithoutQuery(uri string) string {
	if at := strings.IndexAny(uri, "?#"); at >= 0 {
		return uri[:at]
	}
	return uri
}

func hasEmptySegment(path string) bool { return strings.Contains(path, "//") }

// isPossible reports whether a pattern can match a name that a caller may use.
func isPossible(pattern string, fold func(name string) (string, bool)) bool {
	_, ok := fold(strings.NewReplacer("*", "x", "?", "x", "[", "x", "]", "x", "^", "x", `\`, "x").Replace(pattern))
	return ok
}
