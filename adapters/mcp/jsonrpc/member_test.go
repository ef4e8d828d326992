package jsonrpc

import (
	"strings"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Reading a member name", Label("U11"), func() {
	It("finds in each character of the basic plane the letters and separators that folding finds", func() {
		for r := rune(utf8.RuneSelf); r <= 0xffff; r++ {
			folded := fold(string(r))
			isOther := func(r rune) bool { return r >= utf8.RuneSelf }
			if !utf8.ValidRune(r) || isInvisible(r) || strings.ContainsFunc(folded, isOther) {
				continue
			}
			name := readMember(string(r))
			separator := strings.Trim(folded, "-_") == ""
			Expect(name.separated).To(Equal(separator), "U+%04X", r)
			if !separator {
				Expect(string(name.letters[:name.length])).To(Equal(folded), "U+%04X", r)
			}
		}
	})

	DescribeTable("finds the name of which it is another spelling", func(name, exact string) {
		Expect(variantOf(name, significant)).To(Equal(exact))
	},
		Entry("in capitals", "METHOD", "method"),
		Entry("with separators", "_me-thod\ufe4f", "method"),
		Entry("with invisible characters", "\u200bpar\u00adams ", "params"),
		Entry("with the Kelvin sign and a long s", "param\u017f", "params"),
		Entry("in letters of four bytes", "\U0001d4c3\U0001d4ea\U0001d4f6\U0001d4ee", "name"),
		Entry("with separators in place of another one", "me_ta", "_meta"),
		Entry("none for the exact name", "_meta", ""),
		Entry("none for a name that lacks a separator", "meta", ""),
		Entry("none for a longer name", "methods", ""),
		Entry("none for a name in another script", "имя", ""),
	)
})
