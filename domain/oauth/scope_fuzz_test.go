package oauth

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var scopeToken = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+$`)

// FuzzScopes reads and prints scope parameters, and holds what is granted to what is known.
func FuzzScopes(f *testing.F) {
	catalogue := ScopeCatalogue{known: []Scope{{Name: "mcp"}, {Name: "write", Implies: []string{"mcp"}}},
		defaults: NewScopes("mcp")}
	f.Fuzz(func(t *testing.T, text, other string) {
		scopes, err := ParseScopes(text)
		words := wordsOf(text)
		if accepted := words != nil; accepted != (err == nil) {
			t.Fatalf("%q: %v, and the grammar says %t", text, err, accepted)
		}
		if err != nil {
			return
		}
		if values := scopes.Values(); !slices.Equal(values, words) {
			t.Fatalf("%q has the words %q and not %q", text, words, values)
		}
		again, err := ParseScopes(scopes.String())
		if err != nil || again.String() != scopes.String() {
			t.Fatalf("%q is read as %q and then as %q: %v", text, scopes, again, err)
		}
		if others, err := ParseScopes(other); err == nil {
			checkSets(t, scopes, others)
		}
		checkGranted(t, catalogue, text, words)
	})
}

// wordsOf is the reference: the sorted words of a well-formed parameter, nil for any other.
func wordsOf(text string) []string {
	found := map[string]bool{}
	for word := range strings.SplitSeq(text, " ") {
		if word != "" && !scopeToken.MatchString(word) || len(text) > 1024 {
			return nil
		}
		found[word] = true
	}
	delete(found, "")
	return append([]string{}, slices.Sorted(maps.Keys(found))...)
}

func checkSets(t *testing.T, a, b Scopes) {
	t.Helper()
	both, either := a.Intersect(b), a.With(b.Values()...)
	if !a.Contains(both) || !b.Contains(both) || !either.Contains(a) || !either.Contains(b) {
		t.Fatalf("%q and %q have %q in common and are %q together", a, b, both, either)
	}
	if len(both.Values())+len(either.Values()) != len(a.Values())+len(b.Values()) {
		t.Fatalf("%q and %q do not add up", a, b)
	}
	for _, value := range b.Values() {
		if a.Without(value).Has(value) {
			t.Fatalf("%q still has %q", a, value)
		}
	}
}

// checkGranted lets nothing be granted that is unknown, or neither asked for nor a default.
func checkGranted(t *testing.T, catalogue ScopeCatalogue, text string, words []string) {
	t.Helper()
	granted, err := catalogue.resolve(text)
	known := slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"mcp", "write", OfflineAccess}, w)
	})
	openID := !slices.ContainsFunc(words, func(w string) bool {
		return !slices.Contains([]string{"openid", "profile", "email", "address", "phone"}, w)
	})
	if (err == nil) != (known || openID) {
		t.Fatalf("asking for %q gives %v", text, err)
	}
	if err == nil && granted.Without(OfflineAccess).Empty() {
		t.Fatalf("asking for %q grants only %q", text, granted)
	}
	for _, value := range granted.Values() {
		if value != "mcp" && !slices.Contains(words, value) ||
			!slices.Contains([]string{"mcp", "write", OfflineAccess}, value) {
			t.Fatalf("asking for %q grants %q", text, value)
		}
	}
}
