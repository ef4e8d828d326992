package term_test

import (
	"os/exec"
	"testing"

	_ "github.com/onsi/ginkgo/v2" // its flags, which "go test ./..." passes to every package

	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

func TestQuoteIsOneWordOfShell(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		"", "/var/lib/pasteport", "my data", "$HOME", "`id`", "it's", "a&b", "(a)", "a;b", "a\nb", "*", "~", `a\b"c`,
	} {
		shown, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s. "+term.Quote(word)).Output()
		if err != nil || string(shown) != word+"." {
			t.Errorf("the shell reads %q as %q: %v", word, shown, err)
		}
	}
}

func TestCutEndsAtTheWidth(t *testing.T) {
	t.Parallel()
	for text, cut := range map[string]string{
		"":      "",
		"four":  "four",
		"fives": "fiv…",
		"müde":  "müde",
		"日本語です": "日本語…",
	} {
		if got := term.Cut(text, 4); got != cut {
			t.Errorf("%q is cut to %q, not %q", text, got, cut)
		}
	}
}
