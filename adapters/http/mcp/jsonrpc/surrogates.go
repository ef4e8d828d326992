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

// pairSurrogates returns the body with U+FFFD in place of each escaped surrogate in a value that lacks its other half. It leaves the
// body alone, and returns it when there is none; the copy is as long, so that offsets hold for both. In a member name it is a fault.
func pairSurrogates(body []byte) ([]byte, error) {
	if !bytes.Contains(body, []byte(`\ud`)) && !bytes.Contains(body, []byte(`\uD`)) {
		return body, nil
	}
	text := body
	for at := 0; at < len(body); {
		if body[at] != '"' {
			at++
			continue
		}
		lone, end := loneSurrogates(body, at+1)
		if len(lone) > 0 && isName(body[end:]) {
			return nil, &fault{code: sdk.CodeInvalidRequest, what: fmt.Sprintf("a member name has a surrogate without its other half (at byte %d)", lone[0])}
		}
		if len(lone) > 0 && &text[0] == &body[0] {
			text = bytes.Clone(body)
		}
		for _, i := range lone {
			copy(text[i:], `\ufffd`)
		}
		at = end
	}
	return text, nil
}

// loneSurrogates returns where they are in the string that begins at the offset, and the offset behind its closing quote.
func loneSurrogates(body []byte, at int) (lone []int, end int) {
	for at < len(body) {
		switch {
		case body[at] == '"':
			return lone, at + 1
		case body[at] != '\\':
			at++
		case !utf16.IsSurrogate(escaped(body[at:])):
			at += 2
		case utf16.DecodeRune(escaped(body[at:]), escaped(body[at+escapeLength:])) != utf8.RuneError:
			at += 2 * escapeLength
		default:
			lone, at = append(lone, at), at+escapeLength
		}
	}
	return lone, len(body)
}

// escaped returns the UTF-16 code unit that a text begins with, escaped; 0 when it begins with something else.
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

// isName reports whether a string was a member name, by what follows it.
func isName(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}
