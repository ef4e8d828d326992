package term_test

import (
	"testing"

	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

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
