package credential

import (
	"regexp"
	"strings"
	"unicode"
)

// IsInvisible reports whether a character shows nothing and takes no room, such as a zero-width
// space, a byte order mark or a direction mark.
func IsInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// trimInvisible removes white space and invisible characters from both ends.
func trimInvisible(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || IsInvisible(r) })
}

// The beginnings of a line of a shell, a .env file or a request that contains a token. Tokens of
// the form name:secret exist, so a colon counts only before a space, except after authorization.
var (
	variable = regexp.MustCompile(
		`^(?:export[ \t]+)?[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PAT)[A-Z0-9_]*[ \t]*=[ \t]*`)
	header = regexp.MustCompile(
		`(?i)^(?:proxy-)?authorization:[ \t]*(?:token[ \t]+)?|^[a-z0-9-]*(?:key|token|secret):[ \t]+`)
	scheme = regexp.MustCompile(`(?i)^bearer(?:[ \t]+|$)`)
)

// quotes are pairs of quotation marks.
var quotes = []string{`""`, `''`, "``", "“”", "‘’", "„“", "‚‘", "«»", "‹›"}

// UnwrapToken returns the token in a text that a person has pasted: without invisible characters,
// white space or quotation marks around it, "Bearer", or the name of a header or variable.
func UnwrapToken(pasted string) string {
	token := strings.Join(strings.FieldsFunc(pasted, IsInvisible), "")
	for {
		before := trimInvisible(token)
		if token = unquote(unname(before)); token == before {
			return token
		}
	}
}

func unname(text string) string {
	// An equals sign at the end or before another one is padding of base64.
	if value := text[len(variable.FindString(text)):]; value != "" && value[0] != '=' {
		text = value
	}
	text = text[len(header.FindString(text)):]
	return text[len(scheme.FindString(text)):]
}

func unquote(text string) string {
	for _, pair := range quotes {
		opening, closing := string([]rune(pair)[0]), string([]rune(pair)[1])
		if inner, opened := strings.CutPrefix(text, opening); opened {
			if inner, closed := strings.CutSuffix(inner, closing); closed {
				return inner
			}
		}
	}
	return text
}

// HasQuotes reports whether quotation marks are left in the token of a pasted text.
func HasQuotes(pasted string) bool {
	return strings.ContainsAny(UnwrapToken(pasted), strings.Join(quotes, ""))
}

// HasControl reports whether a text has control characters, which no header can carry.
func HasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f })
}
