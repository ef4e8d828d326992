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

const maxURI = 8 << 10 // the maximum length of a URI in bytes

var (
	// unusual matches what servers may read in different ways.
	unusual = regexp.MustCompile(`[^!-~]` + // white space, control characters and what is not ASCII
		"|[%\\\\<>\"|^`;]" + // percent-encoding, backslashes, parameters of paths, and what no URI has
		`|(?:^|[:/?#=])\.\.?(?:[/?#&]|$)` + // dot segments
		`|:(?i:file|https?|wss?|ftp):|:[^:/]*:/?/` + // the beginning of another URI
		`|^(?i:[^:/]*[+_]file|netdoc|phar|php|zip|jar):`) // schemes with which some libraries open files
	// plainHost matches what follows the scheme of a web page: a host that parsers read alike.
	plainHost = regexp.MustCompile(`^//[a-z0-9_{}+*.-]*[a-z0-9_{}+*-](?::[1-9][0-9]*)?(?:[/?#]|$)`)
	// onWeb are schemes to which browsers and Node.js give special rules (WHATWG URL).
	onWeb       = regexp.MustCompile(`^(?:https?|wss?|ftp)$`)
	defaultPort = regexp.MustCompile(`^//[^/?#]*:(?:80|443|21)(?:[/?#]|$)`)
	// number matches a host that ends in a number, which Node.js reads as an IPv4 address.
	number = regexp.MustCompile(`^//(?:[^/?#:]*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?(?:[:/?#]|$)`)
	// address matches an IPv4 address in the form in which all parsers write it.
	address = regexp.MustCompile(`^//(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})(?:[:/?#]|$)`)
	// plainPort matches what follows the scheme of any other hierarchical URI.
	plainPort = regexp.MustCompile(`^[^/?#:@]*(?::[1-9][0-9]*)?(?:[/?#]|$)`)
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
		return folded, plainHost.MatchString(rest) && !defaultPort.MatchString(rest) && !hasEmptySegment(rest[2:]) &&
			(!number.MatchString(rest) || address.MatchString(rest))
	case strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "//"): // file:/a is file:///a (RFC 8089)
		rest = "//" + rest
	}
	if scheme == "file" { // without a host or with localhost, because some libraries ignore any other
		if rest = strings.Replace(rest, "//localhost/", "///", 1); !strings.HasPrefix(rest, "///") {
			return "", false
		}
	}
	authority, hierarchical := strings.CutPrefix(rest, "//")
	if hierarchical && (!plainPort.MatchString(authority) || hasEmptySegment(authority)) {
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

// wildcard matches what stands for other characters in a pattern.
var wildcard = regexp.MustCompile(`\[(?:\\.|[^\]\\])*\]|\\.|[*?]`)

// foldStart returns what stands before the first wildcard of a pattern, in lower case, and how a
// name with this start is compared. The two differ for "file:/a*", because file:/a is file:///a.
func foldStart(pattern string, fold func(name string) (string, bool)) (start, compared string) {
	const following = "x" // in the place of the wildcard and of what follows it
	if at := wildcard.FindStringIndex(pattern); at != nil {
		pattern = pattern[:at[0]] + following
	} else {
		pattern += following
	}
	start = strings.ToLower(pattern)
	if folded, ok := fold(start); ok {
		return strings.TrimSuffix(start, following), strings.TrimSuffix(folded, following)
	}
	return start, start
}

// maxWildcards is the maximum number of wildcards for which isPossible tries every combination.
const maxWildcards = 4

// isPossible reports whether a pattern may match a name that a caller may use. It puts a few texts
// in the place of each wildcard, and asks fold about the result.
func isPossible(pattern string, fold func(name string) (string, bool)) bool {
	if _, ok := fold(pattern); ok {
		return true
	}
	at := wildcard.FindStringIndex(pattern)
	if at == nil {
		return false
	}
	for _, text := range []string{"x", "1", "/x", "//x", "///x"} { // a name, a port, a path, and what follows a scheme
		next := pattern[:at[0]] + text + pattern[at[1]:] // the recursion replaces the other wildcards
		if len(wildcard.FindAllStringIndex(pattern, maxWildcards+1)) > maxWildcards {
			next = wildcard.ReplaceAllLiteralString(pattern, text)
		}
		if isPossible(next, fold) {
			return true
		}
	}
	return false
}
