package credential

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	shortest       = 8                                        // bytes; a shorter text is part of other texts by chance
	longest        = 1 << 16                                  // bytes of a text to redact
	codeCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_" // of base64 and hexadecimal after fold
)

// Encoders of JSON differ: JavaScript escapes no more than it must, Go also what is active in HTML.
var (
	javaScript = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	golang     = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "<", `\u003c`, ">", `\u003e`, "&", `\u0026`)
)

// Finder finds secrets in a text in six spellings: as they are, as in a query, a path or JSON, and
// in the codes hexadecimal and base64. It ignores case. The zero value finds nothing.
type Finder struct{ plain, codes []string }

// NewFinder returns a Finder of the secrets. It ignores empty ones.
func NewFinder(secrets ...string) (f Finder) {
	for _, secret := range secrets {
		query := url.QueryEscape(secret)
		f.plain = append(f.plain, secret, query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(secret))
		python := strconv.QuoteToASCII(secret) // JSON of Python, between quotation marks
		f.plain = append(f.plain, javaScript.Replace(secret), golang.Replace(secret), python[1:len(python)-1])
		f.codes = append(f.codes, hex.EncodeToString([]byte(secret)))
		// In base64, with before other bytes in front, the characters from first on depend on the
		// secret alone, except a last one that also has bits of what follows.
		for before, first := range []int{0, 2, 3} {
			code := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
			f.codes = append(f.codes, code[first:max(first, (before+len(secret))*8/6)])
		}
	}
	return Finder{folded(f.plain, 1), folded(f.codes, shortest)}
}

// Finder returns a Finder of the secrets that are too long to be part of other texts by chance.
func (f Fields) Finder(values Values) Finder {
	isShort := func(secret string) bool { return len(secret) < shortest }
	return NewFinder(slices.DeleteFunc(f.Secrets(values), isShort)...)
}

// folded returns the different texts after fold, without those that are shorter than least.
func folded(texts []string, least int) (all []string) {
	for _, text := range texts {
		if text = fold(text); len(text) >= least && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// fold returns a text of the same length in lower case, with the alphabet of base64 for URLs.
func fold(text string) string {
	all := []byte(text)
	for i, b := range all {
		if 'A' <= b && b <= 'Z' {
			all[i] = b - 'A' + 'a'
		} else if at := strings.IndexByte("+/", b); at >= 0 {
			all[i] = "-_"[at]
		}
	}
	return string(all)
}

// Finds reports whether the text contains a secret.
func (f Finder) Finds(text string) bool { return slices.Contains(f.marks(text), true) }

// marks marks each byte of a secret, and of the base64 or hexadecimal around one.
func (f Finder) marks(text string) []bool {
	marks := make([]bool, len(text))
	text = fold(text)
	for i, spelling := range slices.Concat(f.plain, f.codes) {
		for to := 0; strings.Contains(text[to:], spelling); {
			from := to + strings.Index(text[to:], spelling)
			to = from + len(spelling)
			if i >= len(f.plain) { // a code, whose neighbours belong to it
				from = len(strings.TrimRight(text[:from], codeCharacters))
				to = len(text) - len(strings.TrimLeft(text[to:], codeCharacters+"="))
			}
			for at := from; at < to; at++ {
				marks[at] = true
			}
		}
	}
	return marks
}

// Redact returns the text with every value of a secret field replaced. It returns false, and no
// text, if a secret cannot be found reliably, such as a short one, and for a very long text.
func (f Fields) Redact(text string, values Values) (redacted string, ok bool) {
	secrets := f.Secrets(values)
	isElusive := func(s string) bool { return len(s) < shortest || !utf8.ValidString(s) }
	if len(text) > longest || slices.ContainsFunc(secrets, isElusive) {
		return "", false
	}
	var kept strings.Builder
	text = strings.ToValidUTF8(text, "\ufffd")
	marks := NewFinder(secrets...).marks(text)
	for at, marked := range marks {
		if !marked {
			kept.WriteByte(text[at])
		} else if at == 0 || !marks[at-1] {
			kept.WriteString("[redacted]")
		}
	}
	return kept.String(), true
}
