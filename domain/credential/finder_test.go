package credential

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf16"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// key has characters that some encoders leave as they are and others do not.
const key = `sk-Live_07!~*'() /+=&<"\é😀`

// each encodes every byte of a text.
func each(format string) func(string) string {
	return func(text string) string {
		var all strings.Builder
		for _, b := range []byte(text) {
			_, _ = fmt.Fprintf(&all, format, b)
		}
		return all.String()
	}
}

// eachRune encodes every character of a text.
func eachRune(format string) func(string) string {
	return func(text string) string {
		var all strings.Builder
		for _, r := range text {
			_, _ = fmt.Fprintf(&all, format, r)
		}
		return all.String()
	}
}

// eachUnit encodes every UTF-16 code unit of a text, as JSON in ASCII does.
func eachUnit(text string) string {
	var all strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		_, _ = fmt.Fprintf(&all, `\u%04X`, unit)
	}
	return all.String()
}

// except encodes every byte except letters, digits and some others.
func except(unreserved string, encode func(string) string) func(string) string {
	return func(text string) string {
		var all strings.Builder
		for _, b := range []byte(text) {
			isAlphanumeric := isCode(b) && strings.IndexByte("+/-_", b) < 0
			if isAlphanumeric || strings.IndexByte(unreserved, b) >= 0 {
				all.WriteByte(b)
				continue
			}
			all.WriteString(encode(string([]byte{b})))
		}
		return all.String()
	}
}

var percent = each("%%%02X")

// capital returns the capital of an ASCII letter.
func capital(r rune) rune {
	if r < 0x80 {
		return unicode.ToUpper(r)
	}
	return r
}

// then encodes twice.
func then(first, second func(string) string) func(string) string {
	return func(text string) string { return second(first(text)) }
}

var _ = Describe("Finding a secret", Label("J17", "U15", "U23"), func() {
	DescribeTable("finds and replaces it", func(encode func(string) string) {
		finder := NewFinder(key)
		for _, around := range [][2]string{{"", ""}, {`{"key":"`, `"}`}, {"/a?key=", "&b=%41"}, {"100%", " \\"}} {
			text := around[0] + encode(key) + around[1]
			Expect(finder.Finds(text)).To(BeTrue(), "%s", text)
			Expect(finder.Replace(text, "[redacted]")).To(Equal(around[0]+"[redacted]"+around[1]), "%s", text)
		}
		Expect(finder.Finds(encode("sk-Live_07 is another text"))).To(BeFalse())
	},
		Entry("as it is", func(text string) string { return text }),
		Entry("in capitals", func(text string) string { return strings.Map(capital, text) }),
		Entry("as encodeURIComponent writes it", except("-_.!~*'()", percent)),
		Entry("as encodeURI writes it", except("-_.!~*'();/?:@&=+$,#", percent)),
		Entry("as rawurlencode of PHP writes it", except("-_.~", percent)),
		Entry("as urlencode of PHP writes it", func(text string) string {
			return strings.ReplaceAll(except("-_.", percent)(text), "%20", "+")
		}),
		Entry("as URLEncoder of Java writes it", func(text string) string {
			return strings.ReplaceAll(except("-_.*", percent)(text), "%20", "+")
		}),
		Entry("as url.QueryEscape writes it", url.QueryEscape),
		Entry("as url.PathEscape writes it", url.PathEscape),
		Entry("percent-encoded in lower case", each("%%%02x")),
		Entry("with every character percent-encoded", percent),
		Entry("percent-encoded twice", then(percent, url.QueryEscape)),
		Entry("with every character percent-encoded twice", then(percent, percent)),
		Entry("percent-encoded three times", then(then(percent, url.QueryEscape), url.QueryEscape)),
		Entry("as escape of JavaScript writes it", func(text string) string {
			var all strings.Builder
			for _, unit := range utf16.Encode([]rune(text)) {
				format := "%%%02X"
				if unit > 0xff {
					format = "%%u%04X"
				}
				_, _ = fmt.Fprintf(&all, format, unit)
			}
			return all.String()
		}),
		Entry("with every character as escape of JSON", eachUnit),
		Entry("as escapes of ECMAScript 6", eachRune(`\u{%x}`)),
		Entry("as long escapes of Python", eachRune(`\U%08x`)),
		Entry("as bytes of Python", each(`\x%02x`)),
		Entry("as octal escapes", each(`\%03o`)),
		Entry("as escapes of JSON in JSON", then(eachUnit, func(text string) string {
			return strings.ReplaceAll(text, `\`, `\\`)
		})),
		Entry("as escapes of JSON in a query", then(eachUnit, url.QueryEscape)),
		Entry("escaped for a shell", func(text string) string {
			return `\` + strings.Join(strings.Split(text, ""), `\`)
		}),
		Entry("as HTML", html.EscapeString),
		Entry("as HTML twice", then(html.EscapeString, html.EscapeString)),
		Entry("as decimal entities", eachRune("&#%d;")),
		Entry("as hexadecimal entities", eachRune("&#x%x;")),
		Entry("as entities with zeros", eachRune("&#%07d;")),
		Entry("as named entities", func(text string) string {
			names := strings.NewReplacer("!", "&excl;", "_", "&lowbar;", "/", "&sol;", "é", "&eacute;", "&", "&amp;")
			return names.Replace(text)
		}),
		Entry("as entities in a query", then(eachRune("&#%d;"), url.QueryEscape)),
		Entry("half in one way and half in another", func(text string) string {
			half := strings.IndexByte(text, ' ')
			return percent(text[:half]) + eachRune("&#%d;")(text[half:])
		}),
	)

	DescribeTable("replaces all of", func(encoded string) {
		finder := NewFinder(key)
		Expect(finder.Finds(encoded)).To(BeTrue())
		Expect(finder.Replace("a "+encoded+" b", "[redacted]")).To(Equal("a [redacted] b"))
	},
		Entry("hexadecimal", hex.EncodeToString([]byte("ann:"+key))),
		Entry("hexadecimal in capitals", strings.ToUpper(hex.EncodeToString([]byte(key)))),
		Entry("base64", base64.StdEncoding.EncodeToString([]byte(key))),
		Entry("base64 after one byte", base64.StdEncoding.EncodeToString([]byte(":"+key+"~"))),
		Entry("base64 after two bytes", base64.URLEncoding.EncodeToString([]byte("a:"+key+"~b"))),
	)

	It("replaces occurrences that overlap or follow each other, and the longer of two secrets", func() {
		Expect(NewFinder("abcdabcd").Replace("abcdabcdabcd abcdabcdabcdabcd", "*")).To(Equal("*abcd **"))
		Expect(NewFinder("12345678", "1234567890").Replace("a1234567890b", "*")).To(Equal("a*b"))
	})

	It("finds nothing for no secret, and only exact text for a short one", func() {
		Expect(Finder{}.Finds("abc")).To(BeFalse())
		Expect(NewFinder("", "abc").Finds("xabcx")).To(BeTrue())
		Expect(NewFinder("abc").Finds(hex.EncodeToString([]byte("abc")))).To(BeFalse())
	})
})
