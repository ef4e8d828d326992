package http

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/domain/oauth"
)

// FuzzForm reads parameters beside a parser that only splits and unescapes.
func FuzzForm(f *testing.F) {
	f.Fuzz(func(t *testing.T, encoded string) {
		parameters, err := parse(encoded)
		reference, ok := split(encoded)
		if (err == nil) != ok {
			t.Fatalf("%q: %v, and the reference says %t", encoded, err, ok)
		}
		if err != nil {
			return
		}
		repeated := false
		for name, values := range reference {
			filled := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
			first := ""
			if len(filled) > 0 {
				first = filled[0]
			}
			if parameters.Get(name) != first || !slices.Equal(parameters.All(name), filled) {
				t.Fatalf("%q has %q and not %q as %q", encoded, parameters[name], values, name)
			}
			if (parameters.CheckNotRepeated(name) != nil) != (len(filled) > 1) {
				t.Fatalf("%q repeats %q %d times", encoded, name, len(filled))
			}
			repeated = repeated || len(values) > 1 && name != "resource"
		}
		if len(parameters) != len(reference) || (parameters.CheckNoneRepeated() != nil) != repeated {
			t.Fatalf("%q is read as %q and not as %q", encoded, parameters, reference)
		}
	})
}

// split is the reference: pairs between "&", escapes of two digits, and no ";".
func split(encoded string) (oauth.Parameters, bool) {
	found := oauth.Parameters{}
	for pair := range strings.SplitSeq(encoded, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.PathUnescape(strings.ReplaceAll(name, "+", " "))
		value, valueErr := url.PathUnescape(strings.ReplaceAll(value, "+", " "))
		if nameErr != nil || valueErr != nil || strings.Contains(pair, ";") {
			return nil, false
		}
		if pair != "" {
			found[name] = append(found[name], value)
		}
	}
	return found, true
}
