package client_test

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

var (
	loopbackURI = regexp.MustCompile(`^http://(127\.0\.0\.1|\[::1\]|localhost)(:[0-9]+)?([/?].*)?$`)
	private     = []string{"cursor", "com.example.app"}
)

// FuzzRedirectMatch compares the matcher with one that is written another way, and with what a URL
// parser sees.
func FuzzRedirectMatch(f *testing.F) {
	f.Fuzz(func(t *testing.T, registered, requested string) {
		published, err := client.ParseRedirectURI(registered, private)
		if err != nil {
			return
		}
		checkTarget(t, published)
		if !client.Matches(published, published) {
			t.Fatalf("%q does not match itself", registered)
		}
		asked, err := client.ParseRedirectURI(requested, private)
		if err != nil {
			if requested == registered {
				t.Fatalf("accepted once, then refused: %v", err)
			}
			return
		}
		checkTarget(t, asked)
		if got, want := client.Matches(asked, published), mayReplace(requested, registered); got != want {
			t.Fatalf("%q for the registered %q: %t, and the reference says %t", requested, registered, got, want)
		}
		if client.Matches(asked, published) {
			checkSameTarget(t, asked, published)
		}
	})
}

// mayReplace is the reference: equal strings, but for the port of a loopback URI.
func mayReplace(requested, registered string) bool {
	mine, theirs := loopbackURI.FindStringSubmatch(requested), loopbackURI.FindStringSubmatch(registered)
	switch {
	case strings.HasPrefix(registered, "http://") && (mine == nil || theirs == nil):
		return false
	case mine == nil || theirs == nil:
		return requested == registered
	}
	return mine[1] == theirs[1] && mine[3] == theirs[3] && isPort(mine[2]) && isPort(theirs[2])
}

func isPort(text string) bool {
	number, err := strconv.ParseUint(strings.TrimPrefix(text, ":"), 10, 16)
	return text == "" || err == nil && number > 0
}

// checkTarget holds what was accepted to what a browser would make of it.
func checkTarget(t *testing.T, target oauth.RedirectURI) {
	t.Helper()
	raw := target.String()
	if strings.ContainsFunc(raw, func(r rune) bool { return r < 0x21 || r > 0x7e }) || strings.ContainsAny(raw, `#\`) {
		t.Fatalf("accepted %q with a forbidden character", raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return // no browser goes there
	}
	switch {
	case u.User != nil || u.Fragment != "" || !u.IsAbs():
		t.Fatalf("accepted %q, which names a user or is relative", raw)
	case u.Scheme == "https" && (u.Hostname() == "" || u.Host != target.Host() || target.Loopback()):
		t.Fatalf("accepted %q, whose host is %q and not %q", raw, u.Host, target.Host())
	case u.Scheme == "http" &&
		(!slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname()) || !target.Loopback()):
		t.Fatalf("accepted %q, which is plain http to %q", raw, u.Hostname())
	case target.PrivateScheme() && !slices.Contains(private, u.Scheme):
		t.Fatalf("accepted %q, whose scheme %q is not allowed", raw, u.Scheme)
	}
}

// checkSameTarget lets only the port of a loopback URI differ.
func checkSameTarget(t *testing.T, asked, published oauth.RedirectURI) {
	t.Helper()
	mine, err := url.Parse(asked.String())
	theirs, otherErr := url.Parse(published.String())
	if err != nil || otherErr != nil {
		return // the reference has compared the bytes
	}
	if published.Loopback() {
		mine.Host, theirs.Host = mine.Hostname(), theirs.Hostname()
	}
	if *mine != *theirs {
		t.Fatalf("%q was taken for the registered %q", asked, published)
	}
}
