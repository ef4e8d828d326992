package oauth

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzResource compares with a normaliser that sees URLs and not strings.
func FuzzResource(f *testing.F) {
	f.Fuzz(func(t *testing.T, canonical, requested string) {
		if checkURL("Resource", canonical, true) != nil {
			return // start-up would fail
		}
		resource := NewResource(canonical)
		if err := resource.accepts([]string{canonical}); err != nil {
			t.Fatalf("%q does not accept itself: %v", canonical, err)
		}
		err := resource.accepts([]string{requested})
		if kind, refused := KindOf(err); err != nil && (!refused || kind != InvalidTarget) {
			t.Fatalf("refused %q with %v", requested, err)
		}
		if got, want := err == nil, namesSame(requested, canonical); got != want {
			t.Fatalf("%q for %q: %t, and the reference says %t", requested, canonical, got, want)
		}
		if both := resource.accepts([]string{canonical, requested}); (both == nil) != (err == nil) {
			t.Fatalf("%q beside %q: %v, and alone: %v", requested, canonical, both, err)
		}
	})
}

// namesSame is the reference.
func namesSame(requested, canonical string) bool {
	_, ok := normalURL(requested)
	if !strings.Contains(canonical, "?") {
		requested, _, _ = strings.Cut(requested, "?")
	}
	mine, isURL := normalURL(requested)
	theirs, _ := normalURL(canonical)
	return ok && isURL && mine == theirs
}

var defaultPorts = map[string]string{"https": "443", "http": "80"}

// normalURL has the scheme and host in lower case, no default port, and one slash less at the end.
func normalURL(raw string) (string, bool) {
	u, err := url.Parse(raw)
	isInvisible := func(char rune) bool { return char <= ' ' || char > '~' }
	if err != nil || u.Opaque != "" || u.User != nil || strings.Contains(raw, "#") ||
		strings.ContainsFunc(raw, isInvisible) {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if port := defaultPorts[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	_, after, _ := strings.Cut(raw[len(u.Scheme):], "://"+u.Host)
	return u.Scheme + " " + host + " " + strings.TrimSuffix(after, "/"), true
}
