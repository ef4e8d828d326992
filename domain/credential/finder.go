package credential

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// Finder finds secrets in a text. Each character of a secret may be written in another way than the
// one before it: as it is, percent-encoded, escaped as in JSON, Python or C, or as an HTML entity,
// also several times over. It also finds secrets in base64 and hexadecimal. It ignores case,
// because escapes have two, and takes + and - for a space, and _ for a slash, as queries and base64
// do. The zero value finds nothing.
type Finder struct{ patterns []pattern }

// shortestCode is the length of base64 and hexadecimal that other texts do not have by chance.
const shortestCode = 8

// NewFinder returns a Finder of the secrets. It ignores empty ones.
func NewFinder(secrets ...string) Finder {
	var f Finder
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		whole := base64.RawStdEncoding.EncodeToString([]byte(secret))
		f.patterns = append(f.patterns, newPattern(secret, false), newPattern(whole, true))
		for _, code := range append(inBase64(secret), hex.EncodeToString([]byte(secret))) {
			if len(code) >= shortestCode {
				f.patterns = append(f.patterns, newPattern(code, true))
			}
		}
	}
	slices.SortFunc(f.patterns, func(a, b pattern) int { return cmp.Compare(a.text, b.text) })
	f.patterns = slices.CompactFunc(f.patterns, func(a, b pattern) bool {
		return a.text == b.text && a.isCode == b.isCode
	})
	return f
}

// inBase64 returns the characters for a secret in the middle of a text, which depend on the number
// of bytes before it, but not on what is before and after it.
func inBase64(secret string) (all []string) {
	for before, first := range []int{0, 2, 3} {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
		if whole := (before + len(secret)) * 8 / 6; first < whole {
			all = append(all, text[first:whole])
		}
	}
	return all
}

// Finds reports whether the text contains a secret.
func (f Finder) Finds(text string) bool {
	plain := normalize(text)
	if slices.ContainsFunc(f.patterns, func(p pattern) bool { return strings.Contains(plain, p.text) }) {
		return true
	}
	if !isEscaped(text) {
		return false
	}
	from := unitsOf(text)
	return slices.ContainsFunc(f.patterns, func(p pattern) bool { return len(p.starts(from, true)) > 0 })
}

// span is a part of a text.
type span struct{ from, to int }

// Replace replaces each secret, and all of the base64 that contains one.
func (f Finder) Replace(text, with string) string {
	var found []span
	from := unitsOf(text)
	for _, p := range f.patterns {
		found = append(found, p.spans(from)...)
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var replaced strings.Builder
	at := 0
	for _, s := range found {
		if s.from >= at {
			replaced.WriteString(text[at:s.from] + with)
		}
		at = max(at, s.to)
	}
	return replaced.String() + text[at:]
}

// normalize returns a text of the same length in the form of patterns.
func normalize(text string) string {
	all := []byte(text)
	for i, b := range all {
		all[i] = normalized(b)
	}
	return string(all)
}

func normalized(b byte) byte {
	switch {
	case 'A' <= b && b <= 'Z':
		return b - 'A' + 'a'
	case b == '+', b == ' ':
		return '-'
	case b == '/':
		return '_'
	}
	return b
}
