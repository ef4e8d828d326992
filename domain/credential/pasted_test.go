package credential

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A pasted token", Label("B7"), func() {
	DescribeTable("is unwrapped from", func(pasted string) {
		Expect(UnwrapToken(pasted)).To(Equal("k3y-Abc=="))
	},
		Entry("nothing", "k3y-Abc=="), Entry("spaces and line breaks", " \t k3y-Abc==\r\n"),
		Entry("no-break spaces", "\u00a0k3y-Abc==\u00a0\u202f"),
		Entry("zero-width characters, also inside", "\u200bk3y-\u200bAbc\u200d==\u2060"),
		Entry("a byte order mark", "\ufeffk3y-Abc=="),
		Entry("direction marks", "\u202ak3y-Abc==\u202c"), Entry("a soft hyphen", "k3y-\u00adAbc=="),
		Entry("double quotes", `"k3y-Abc=="`), Entry("single quotes", `'k3y-Abc=='`),
		Entry("a backtick", "`k3y-Abc==`"), Entry("a block of code", "```\nk3y-Abc==\n```"),
		Entry("typographic quotes", "“k3y-Abc==”"), Entry("German quotes", "„k3y-Abc==“"),
		Entry("French quotes", "«\u00a0k3y-Abc==\u00a0»"),
		Entry("its scheme", "bEaReR  k3y-Abc=="), Entry("its scheme twice", "Bearer Bearer k3y-Abc=="),
		Entry("its header", "Authorization: Bearer k3y-Abc=="),
		Entry("its header in lower case, without a scheme", "authorization:k3y-Abc=="),
		Entry("Django's header", "Authorization: Token k3y-Abc=="),
		Entry("a header of its own", "X-Api-Key: k3y-Abc=="),
		Entry("a quoted header", `"Authorization: Bearer k3y-Abc=="`),
		Entry("a variable", "KEY=k3y-Abc=="), Entry("a variable of a shell", `export ACME_API_TOKEN="k3y-Abc=="`),
		Entry("a variable in a .env file", "GITHUB_PAT = 'k3y-Abc=='"),
		Entry("a line of YAML", "api-key: k3y-Abc=="),
	)

	DescribeTable("keeps what may be a part of it:", func(token string) {
		Expect(UnwrapToken(token)).To(Equal(token))
	},
		Entry("a colon", "token:k3y"), Entry("an equals sign", "sv=2026&key=abc"),
		Entry("padding after capitals", "ABCKEY=="), Entry("one padding", "MYKEY="),
		Entry("a name without a value", "API_KEY="), Entry("quotes inside", `a"b`),
		Entry("one quote", `"abc`), Entry("spaces inside", "correct horse"), Entry("Bearer inside", "abcBearer x"),
		Entry("bytes that are not UTF-8", "a\xffb"),
	)

	DescribeTable("is empty when only the wrapping was pasted:", func(pasted string) {
		Expect(UnwrapToken(pasted)).To(BeEmpty())
	}, Entry(nil, ""), Entry(nil, "\u200b \ufeff"), Entry(nil, "Bearer"), Entry(nil, "Authorization: Bearer "),
		Entry(nil, `""`), Entry(nil, "KEY=\"\""))

	It("is checked for quotation marks that are left", func() {
		Expect(HasQuotes(`{"token": "abc"}`)).To(BeTrue())
		Expect(HasQuotes(`"abc`)).To(BeTrue())
		Expect(HasQuotes(`"abc"`)).To(BeFalse())
	})
})

// FuzzUnwrapToken removes nothing twice, adds nothing, and returns a token from every wrapping.
func FuzzUnwrapToken(f *testing.F) {
	f.Fuzz(func(t *testing.T, pasted string) {
		token := UnwrapToken(pasted)
		if again := UnwrapToken(token); again != token {
			t.Fatalf("%q is read as %q, and that as %q", pasted, token, again)
		}
		visible := strings.Join(strings.FieldsFunc(pasted, IsInvisible), "")
		if !strings.Contains(visible, token) {
			t.Fatalf("%q is read as %q", pasted, token)
		}
		for _, wrapped := range []string{" \u00a0" + pasted + "\ufeff\n", "Authorization: Bearer " + pasted,
			"`" + pasted + "`"} {
			if got := UnwrapToken(wrapped); got != token && token != "" {
				t.Fatalf("%q is read as %q and not as %q", wrapped, got, token)
			}
		}
	})
}
