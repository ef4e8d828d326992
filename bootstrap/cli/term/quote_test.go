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
