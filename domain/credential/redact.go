package credential

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	shortestRedacted = 8       // bytes; a shorter secret is part of other words, and of other secrets in base64
	longestRedacted  = 1 << 16 // bytes of a text
)

// redactedText replaces a secret.
const redactedText = "[redacted]"

// Redact returns the text with every value of a secret field replaced, as a Finder finds it. It
// returns false, and no text, when it cannot find them reliably: for a secret of less than 8 bytes
// and for a very long text.
func (f Fields) Redact(text string, values Values) (redacted string, ok bool) {
	secrets := f.Secrets(values)
	unsafe := func(s string) bool { return len(s) < shortestRedacted || !utf8.ValidString(s) }
	if len(text) > longestRedacted || slices.ContainsFunc(secrets, unsafe) {
		return "", false
	}
	return NewFinder(secrets...).Replace(strings.ToValidUTF8(text, "\ufffd"), redactedText), true
}
