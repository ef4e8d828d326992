package oauth

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pasteport/pasteport/domain/credential"
)

// FuzzHostToken accepts every text that is a token once it is unwrapped, and
// prints nothing.
func FuzzHostToken(f *testing.F) {
	f.Fuzz(func(t *testing.T, pasted string) {
		want := credential.UnwrapToken(pasted)
		host, err := ParseHostToken(pasted)
		kind, _ := KindOf(err)
		switch {
		case want == "":
			if kind != MissingHostToken {
				t.Fatalf("%q has no token: %v", pasted, err)
			}
		case len(want) > 4096 || regexp.MustCompile(`[\x00-\x1f\x7f]`).MatchString(want), IsOwnToken(want):
			if kind != WrongHostToken {
				t.Fatalf("%q cannot be a token: %v", pasted, err)
			}
		case err != nil || host.Reveal() != want:
			t.Fatalf("%q is read as %q and not as %q: %v", pasted, host.Reveal(), want, err)
		}
		if printed := fmt.Sprintf("%v %+v %#v %s %q %x", host, host, host, host, host,
			host); printed != strings.TrimSpace(strings.Repeat(redacted+" ", 6)) {
			t.Fatalf("printed %q", printed)
		}
	})
}
