package term_test

import (
	"os/exec"
	"testing"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

func TestQuote(t *testing.T) {
	for _, word := range []string{"/var/lib/pasteport", "My Documents", "a$HOME", "`id`", "it's", `"`, "a&b",
		"(a)", "", "~"} {
		read, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+term.Quote(word)).Output()
		if err != nil || string(read) != word {
			t.Errorf("a shell reads %s as %q: %v", term.Quote(word), read, err)
		}
	}
	if plain := "/var/lib/pasteport"; term.Quote(plain) != plain {
		t.Errorf("%s is in quotes", plain)
	}
}
