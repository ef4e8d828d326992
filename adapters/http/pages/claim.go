package pages

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/pasteport/pasteport/domain/credential"
)

// longest is the number of characters shown of any text that the client chose.
const longest = 80

// claim makes a client's text fit to show: one line, no invisible or direction-changing characters,
// cut at its end.
func claim(text string) string {
	shown := []rune(clean(text))
	if len(shown) <= longest {
		return string(shown)
	}
	return strings.TrimSpace(string(shown[:longest-1])) + "…"
}

// appName is claim for the name of an app, which the pages quote: it cannot end the quotation.
func appName(text string) string { return claim(quotationMarks.ReplaceAllString(text, "")) }

var quotationMarks = regexp.MustCompile("[\"“”„‟«»「」『』〝〞＂]")

// host is claim for a host name. It cuts the start, because the end of a name identifies its owner.
func host(name string) string {
	shown := []rune(clean(name))
	if len(shown) <= longest {
		return string(shown)
	}
	return "…" + string(shown[len(shown)-longest+1:])
}

// clean removes invisible characters and replaces every run of white space by one space.
func clean(text string) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == brailleBlank:
			return ' '
		case !unicode.IsGraphic(r), credential.IsInvisible(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(visible), " ")
}

// brailleBlank counts as a symbol in Unicode but shows nothing.
const brailleBlank = '\u2800'
