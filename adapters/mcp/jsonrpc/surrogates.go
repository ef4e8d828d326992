package jsonrpc

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// escapeLength is the length of \u0000.
const escapeLength = 6

// replaceSurrogates returns a copy of the body with U+FFFD instead of unpaired surrogates in
// values, or the body itself if there are none. Offsets in both are the same. It refuses an
// unpaired surrogate in a member name.
func replaceSurrogates(body []byte) ([]byte, error) {
	if !bytes.Contains(body, []byte(`\ud`)) && !bytes.Contains(body, []byte(`\uD`)) {
		return body, nil
	}
	text := body
	for at := 0; at < len(body); {
		if body[at] != '"' {
			at++
			continue
		}
		unpaired, end := unpairedSurrogates(body, at+1)
		if len(unpaired) > 0 && isName(body[end:]) {
			return nil, &messageError{code: sdk.CodeInvalidRequest,
				text: fmt.Sprintf("a member name has an unpaired surrogate (at byte %d)", unpaired[0])}
		}
		if len(unpaired) > 0 && &text[0] == &body[0] {
			text = bytes.Clone(body)
		}
		for _, i := range unpaired {
			copy(text[i:], `\ufffd`)
		}
		at = end
	}
	return text, nil
}

// unpairedSurrogates returns the offsets of unpaired surrogates in the string that begins at the
// offset, and the offset after its closing quote.
func unpairedSurrogates(body []byte, at int) (unpaired []int, end int) {
	for at < len(body) {
		switch {
		case body[at] == '"':
			return unpaired, at + 1
		case body[at] != '\\':
			at++
		case !utf16.IsSurrogate(escaped(body[at:])):
			at += 2
		case utf16.DecodeRune(escaped(body[at:]), escaped(body[at+escapeLength:])) != utf8.RuneError:
			at += 2 * escapeLength
		default:
			unpaired, at = append(unpaired, at), at+escapeLength
		}
	}
	return unpaired, len(body)
}

// escaped returns the UTF-16 code unit of the escape sequence at the beginning of a text, 0 if
// there is none.
func escaped(text []byte) rune {
	if len(text) < escapeLength || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(text[2:escapeLength]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}

// isName reports whether the string before the rest is a member name.
func isName(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}
