package credential

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
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

// Redact returns the text with every value of a secret field replaced: as it is, quoted, percent-encoded, in base64 also within a longer text, and in
// hexadecimal. It returns false, and no text, when it cannot find them reliably: for a secret of less than 8 bytes and for a very long text.
func (f Fields) Redact(text string, values Values) (redacted string, ok bool) {
	secrets := f.Secrets(values)
	unsafe := func(s string) bool { return len(s) < shortestRedacted || !utf8.ValidString(s) }
	if len(text) > longestRedacted || slices.ContainsFunc(secrets, unsafe) {
		return "", false
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be the beginning of another
	text = strings.ToValidUTF8(text, "\ufffd")
	for _, secret := range secrets {
		spellings, err := regexp.Compile(`(?i)` + spelled(secret) + `|` + inBase64(secret) + `|` + hex.EncodeToString([]byte(secret)))
		if err != nil {
			return "", false
		}
		text = spellings.ReplaceAllLiteralString(text, redactedText)
	}
	return text, true
}

// spelled matches a secret each of whose characters may be percent-encoded, once or again, or escaped as in JSON and Go.
func spelled(secret string) string {
	var pattern strings.Builder
	for _, char := range secret {
		bytes := ""
		for _, b := range []byte(string(char)) {
			bytes += fmt.Sprintf(`%%(?:25)*%02x`, b)
		}
		plain := regexp.QuoteMeta(string(char))
		_, _ = fmt.Fprintf(&pattern, `(?:\\*%s|%s|\\+u%04x|\\+x%02x|&#0*%d;`, plain, bytes, char, char, char)
		if char == ' ' {
			pattern.WriteString(`|\+`) // in a query
		}
		pattern.WriteString(`)`)
	}
	return pattern.String()
}

// inBase64 matches base64 that encodes the secret at any place, to the ends of the encoded text.
func inBase64(secret string) string {
	var encoded []string
	for before := range 3 { // bytes in the group of the first one
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		whole := (before + len(secret)) * 8 / 6 // characters that depend on nothing after the secret
		first := (before*8 + 5) / 6             // characters that depend on the bytes before it
		core := regexp.QuoteMeta(text[first:whole])
		encoded = append(encoded, strings.NewReplacer(`\+`, `(?:[+-]|%2b)`, `/`, `(?:[/_]|%2f)`).Replace(core))
	}
	return `[a-z0-9+/_-]*(?:` + strings.Join(encoded, "|") + `)[a-z0-9+/_-]*=*`
}
