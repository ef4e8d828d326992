package credential

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	layers      = 3   // of encodings, such as percent-encoding twice in JSON
	longestUnit = 255 // bytes of an encoded character
)

// unit is a character or byte of a text after some layers of encoding are removed.
type unit struct {
	char   rune
	isByte bool // of a character, in percent-encoding for example
	next   int  // index after it
}

// appendTo appends the bytes of the unit.
func (u unit) appendTo(text []byte) []byte {
	if u.isByte {
		return append(text, byte(u.char)) //nolint:gosec // at most 0xff
	}
	return utf8.AppendRune(text, u.char)
}

// isEscaped reports whether a text may have encoded characters.
func isEscaped(text string) bool { return strings.ContainsAny(text, `%\&`) }

// units are what can be read at each position of a text.
type units struct {
	text    string
	escaped []unit
	first   []int // index in escaped of the first unit at each position
}

func unitsOf(text string) units {
	escapes := strings.Count(text, "%") + strings.Count(text, `\`) + strings.Count(text, "&")
	u := units{text, make([]unit, 0, escapes*(layers+1)), make([]int, 0, len(text)+1)}
	for at := range len(text) {
		u.first = append(u.first, len(u.escaped))
		if isEscaped(text[at : at+1]) {
			u.escaped = appendEscaped(u.escaped, text, at)
		}
	}
	u.first = append(u.first, len(u.escaped))
	return u
}

// at returns what can be read at a position, of which the first is the byte itself.
func (u units) at(position int) (plain unit, more []unit) {
	return unit{rune(u.text[position]), true, position + 1}, u.escaped[u.first[position]:u.first[position+1]]
}

// appendEscaped appends what can be read at a position when some layers of encoding are removed.
func appendEscaped(all []unit, text string, at int) []unit {
	before := at + 1
	for layer := 1; layer <= layers; layer++ {
		u := read(text, at, layer)
		if u.next == before || u.next-at > longestUnit {
			continue
		}
		before = u.next
		all = append(all, u)
		if u.isByte && u.char >= utf8.RuneSelf { // of Latin-1, as JavaScript writes it
			all = append(all, unit{u.char, false, u.next})
		}
		if u.next == at+2 { // a character that is escaped for a shell
			all = append(all, unit{rune(text[at+1]), true, u.next})
		}
	}
	return all
}

// read reads a character in some layers of encoding, or as it is if it is not encoded.
func read(text string, at, layer int) unit {
	if at >= len(text) {
		return unit{-1, true, at}
	}
	if layer == 0 || !isEscaped(text[at:at+1]) {
		return unit{rune(text[at]), true, at + 1}
	}
	first := read(text, at, layer-1)
	r := escape{text, first.next, layer - 1}
	var decoded rune
	var isByte, ok bool
	switch first.char {
	case '%':
		decoded, isByte, ok = r.percent()
	case '\\':
		decoded, isByte, ok = r.backslash()
	case '&':
		decoded, ok = r.entity()
	}
	if !ok {
		return first
	}
	return unit{decoded, isByte, r.at}
}

// escape reads an escape after its first character, each character of which may be encoded itself.
type escape struct {
	text  string
	at    int
	layer int
}

func (e *escape) next() rune {
	u := read(e.text, e.at, e.layer)
	e.at = u.next
	return u.char
}

// skip skips a character if it is next.
func (e *escape) skip(char rune) bool {
	u := read(e.text, e.at, e.layer)
	if u.char == char {
		e.at = u.next
	}
	return u.char == char
}

// percent reads XX or uXXXX.
func (e *escape) percent() (char rune, isByte, ok bool) {
	if e.skip('u') || e.skip('U') {
		char, ok = e.surrogates('%')
		return char, false, ok
	}
	char, ok = e.digits(16, 2, 2)
	return char, true, ok
}

var controls = map[rune]rune{
	'a': '\a',
	'b': '\b',
	'f': '\f',
	'n': '\n',
	'r': '\r',
	't': '\t',
	'v': '\v',
}

// backslash reads xXX, uXXXX, UXXXXXXXX, up to three octal digits, or one character, in any case.
func (e *escape) backslash() (char rune, isByte, ok bool) {
	before := *e
	letter := e.next()
	if all := *e; letter == 'U' {
		if char, ok = all.digits(16, 8, 8); ok {
			*e = all
			return char, false, true
		}
	}
	switch lower := unicode.ToLower(letter); {
	case lower == 'x' && !e.isBrace():
		char, ok = e.digits(16, 2, 2)
		return char, true, ok
	case lower == 'x', lower == 'u' && e.isBrace():
		e.skip('{')
		char, ok = e.digits(16, 1, 8)
		return char, false, ok && e.skip('}')
	case lower == 'u':
		char, ok = e.surrogates('\\')
		return char, false, ok
	case letter >= '0' && letter <= '7':
		*e = before
		char, ok = e.digits(8, 1, 3)
		return char, true, ok && char <= 0xff
	case controls[lower] != 0:
		return controls[lower], true, true
	}
	return letter, true, letter > 0
}

func (e *escape) isBrace() bool { return read(e.text, e.at, e.layer).char == '{' }

// surrogates reads XXXX, or XXXX\uXXXX for a character of two UTF-16 code units, with that first
// character of escapes.
func (e *escape) surrogates(first rune) (char rune, ok bool) {
	char, ok = e.digits(16, 4, 4)
	if !ok || !utf16.IsSurrogate(char) {
		return char, ok
	}
	low := *e
	if low.skip(first) && (low.skip('u') || low.skip('U')) {
		if second, ok := low.digits(16, 4, 4); ok {
			*e = low
			return utf16.DecodeRune(char, second), true
		}
	}
	return char, true
}

const longestEntity = 33 // characters of the name of an HTML entity

// entity reads #DD;, #xXX; or the name of an HTML entity.
func (e *escape) entity() (char rune, ok bool) {
	if e.skip('#') {
		base := 10
		if e.skip('x') || e.skip('X') {
			base = 16
		}
		char, ok = e.digits(base, 1, 10)
		e.skip(';')
		return char, ok
	}
	name := make([]byte, 0, longestEntity)
	for c := e.next(); c != ';'; c = e.next() {
		if c >= utf8.RuneSelf || !isCode(byte(c)) || len(name) == longestEntity { //nolint:gosec // compared before
			return 0, false
		}
		name = append(name, byte(c)) //nolint:gosec // compared before
	}
	decoded := html.UnescapeString("&" + string(name) + ";")
	char, size := utf8.DecodeRuneInString(decoded)
	return char, size == len(decoded) && size > 0
}

// digits reads a number with at least and at most so many digits.
func (e *escape) digits(base, least, most int) (number rune, ok bool) {
	for count := 0; ; count++ {
		u := read(e.text, e.at, e.layer)
		digit := valueOf(u.char)
		if count == most || digit >= base || number > unicode.MaxRune {
			return number, count >= least && number <= unicode.MaxRune
		}
		number = number*rune(base) + rune(digit) //nolint:gosec // a digit is below the base
		e.at = u.next
	}
}

// valueOf returns the value of a digit, or a large number.
func valueOf(char rune) int {
	switch {
	case '0' <= char && char <= '9':
		return int(char - '0')
	case 'a' <= char && char <= 'f':
		return int(char-'a') + 10
	case 'A' <= char && char <= 'F':
		return int(char-'A') + 10
	}
	return unicode.MaxRune
}
