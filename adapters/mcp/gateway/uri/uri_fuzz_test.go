package uri

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/oauth"
)

// FuzzReadings checks with parsers like those of servers that none finds a secret in a URI that the
// rules permit, whether they allow or deny.
func FuzzReadings(f *testing.F) {
	denying, allowing := rulesOf("deny file:///secret/* file:///etc/key https://h/secret/*", "allow *"),
		rulesOf("allow file:///public/*", "allow https://h/public/*")
	f.Fuzz(func(t *testing.T, uri string) {
		denied, allowed := !denying.Permit(oauth.Caller{}, uri), allowing.Permit(oauth.Caller{}, uri)
		for name, parse := range map[string]func(string) (host, place string){
			"WHATWG":   browser,
			"Python":   python,
			"Go":       golang,
			"decoding": decodingFirst,
		} {
			host, place := parse(uri)
			isSecret := host == "" && (place == "/etc/key" || strings.HasPrefix(place, "/secret/")) ||
				host == "h" && strings.HasPrefix(place, "/secret/")
			if isSecret && !denied {
				t.Fatalf("the rules that deny permit %q, which %s reads as %q of %q; readings %q", uri, name, place,
					host, Readings(uri))
			}
			if place != "" && !strings.HasPrefix(place+"/", "/public/") && allowed {
				t.Fatalf("the rules that allow permit %q, which %s reads as %q of %q; readings %q", uri, name, place,
					host, Readings(uri))
			}
		}
	})
}

func rulesOf(lines ...string) access.Rules {
	rules, mistakes := access.Parse(lines, access.Vocabulary{Readings: Readings, Forms: Forms})
	if len(mistakes) > 0 {
		panic(mistakes)
	}
	return rules
}

// The parsers return the host, "" for a file, and the path that a server opens, "" for none.

// browser parses as the URL standard does for files and web pages, and decodes as fileURLToPath of
// Node.js.
func browser(uri string) (host, place string) {
	uri = strings.TrimFunc(uri, func(r rune) bool { return r <= ' ' })
	uri = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(uri)
	scheme, rest, _ := strings.Cut(uri, ":")
	if scheme = lowerASCII(scheme); scheme != "file" && scheme != "https" {
		return "", ""
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	rest = strings.ReplaceAll(rest, `\`, "/")
	switch {
	case scheme == "https":
		host, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		host = lowerASCII(decode(host[strings.LastIndex(host, "@")+1:]))
		host = strings.TrimSuffix(strings.TrimSuffix(host, ":"), ":443")
	case strings.HasPrefix(rest, "//"):
		authority, after, _ := strings.Cut(rest[2:], "/")
		if authority = lowerASCII(decode(authority)); authority != "" && authority != "localhost" {
			return "", ""
		}
		rest = after
	}
	var segments []string
	for segment := range strings.SplitSeq(rest, "/") {
		switch strings.ReplaceAll(lowerASCII(segment), "%2e", ".") {
		case ".":
		case "..":
			segments = segments[:max(0, len(segments)-1)]
		default:
			segments = append(segments, segment)
		}
	}
	return host, path.Clean("/" + decode(strings.Join(segments, "/")))
}

// python parses as urlparse does, and takes the decoded path without parameters.
func python(uri string) (host, place string) {
	uri = strings.TrimFunc(uri, func(r rune) bool { return r <= ' ' })
	uri = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(uri)
	return opened(uri, func(rest string) string { return decode(rest) })
}

// decodingFirst decodes twice before it parses.
func decodingFirst(uri string) (host, place string) {
	return opened(decode(decode(uri)), func(rest string) string { return rest })
}

var parameter = regexp.MustCompile(`;[^/]*`)

func opened(uri string, read func(rest string) string) (host, place string) {
	scheme, rest, _ := strings.Cut(uri, ":")
	if scheme = lowerASCII(scheme); scheme != "file" && scheme != "https" {
		return "", ""
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	if after, found := strings.CutPrefix(rest, "//"); found {
		host, rest, _ = strings.Cut(after, "/")
		if host = lowerASCII(host); scheme == "file" { // the host is ignored
			host = ""
		}
	}
	return host, path.Clean("/" + read(parameter.ReplaceAllString(rest, "")))
}

func golang(uri string) (host, place string) {
	parsed, err := url.Parse(uri)
	if err != nil || !slices.Contains([]string{"file", "https"}, parsed.Scheme) {
		return "", ""
	}
	if parsed.Scheme == "https" {
		host = strings.ToLower(parsed.Hostname())
	}
	return host, path.Clean("/" + parsed.Path + parsed.Opaque)
}

var sequence = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// decode decodes each valid sequence, and leaves others.
func decode(text string) string {
	return sequence.ReplaceAllStringFunc(text, func(one string) string {
		decoded, _ := url.PathUnescape(one)
		return decoded
	})
}

func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
