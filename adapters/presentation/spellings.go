package presentation

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// repeatedIn returns a function that reports whether a text contains one of the secrets in any spelling.
func repeatedIn(secrets []string) func(text string) bool {
	var all []string
	for _, secret := range secrets {
		all = append(all, spellings(secret)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return func(text string) bool {
		text = strings.ToLower(text)
		return slices.ContainsFunc(all, func(spelling string) bool { return spelling != "" && strings.Contains(text, spelling) })
	}
}

// spellings returns the ways in which programs write a secret, in lower case.
func spellings(secret string) (all []string) {
	all = append(all, secret, url.QueryEscape(secret), escape(secret), url.PathEscape(secret), base64.RawStdEncoding.EncodeToString([]byte(secret)))
	all = appendLong(all, append(inBase64(secret), hex.EncodeToString([]byte(secret)))...)
	if strings.ContainsFunc(secret, isQuoted) {
		ascii := quoted(secret, true)
		all = append(all, quoted(secret, false), ascii, strings.ReplaceAll(ascii, "/", `\/`), ofGo(secret), ofBytes(secret))
	}
	for _, spelling := range all {
		if strings.ContainsAny(spelling, "+/") { // the other alphabet of base64
			all = append(all, strings.NewReplacer("+", "-", "/", "_").Replace(spelling))
		}
	}
	for i, spelling := range all {
		all[i] = strings.ToLower(spelling)
	}
	return all
}

// appendLong leaves out spellings that are so short that other texts have them too.
func appendLong(all []string, spellings ...string) []string {
	for _, spelling := range spellings {
		if len(spelling) >= shortestLine {
			all = append(all, spelling)
		}
	}
	return all
}

// inBase64 returns the characters for a secret in the middle of a text, which depend on the number of bytes before it.
func inBase64(secret string) (all []string) {
	for before, shared := range []int{0, 2, 3} { // the characters that also depend on the bytes before
		whole := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
		if (before+len(secret))%3 != 0 {
			whole = whole[:len(whole)-1] // it also depends on the bytes after
		}
		all = append(all, whole[min(shared, len(whole)):])
	}
	return all
}

// short are the escapes of control characters, quotes and backslashes.
var short = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// isQuoted reports whether some language escapes a character in quotes.
func isQuoted(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\/<>&`, r) }

// quoted returns a text inside of quotes as JavaScript writes JSON, or as Python does, in ASCII.
func quoted(text string, ascii bool) string {
	var all strings.Builder
	for _, r := range text {
		escape, isShort := short[r]
		switch {
		case isShort:
			all.WriteString(escape)
		case r > 0xffff && ascii:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&all, `\u%04x\u%04x`, high, low)
		case r < ' ', r > '~' && ascii:
			fmt.Fprintf(&all, `\u%04x`, r)
		default:
			all.WriteRune(r)
		}
	}
	return all.String()
}

// ofGo returns a text inside of quotes as Go writes JSON.
func ofGo(text string) string {
	all, _ := json.Marshal(text) // strings always encode
	return string(all[1 : len(all)-1])
}

// ofBytes returns a text as Python and other languages write bytes.
func ofBytes(text string) string {
	var all strings.Builder
	for _, b := range []byte(text) {
		switch {
		case b != '"' && short[rune(b)] != "" && b != '\b' && b != '\f':
			all.WriteString(short[rune(b)])
		case b < ' ', b > '~':
			fmt.Fprintf(&all, `\x%02x`, b)
		default:
			all.WriteByte(b)
		}
	}
	return all.String()
}
