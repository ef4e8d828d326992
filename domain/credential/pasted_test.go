package credential

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A pasted token", Label("B7"), func() {
	It("is unwrapped from spaces, invisible characters, quotes, headers and variables", func() {
		for _, pasted := range []string{
			"k3y-Abc==", " \t k3y-Abc==\r\n", "\u00a0k3y-Abc==\u00a0\u202f", "\u200bk3y-\u200bAbc\u200d==\u2060",
			"\ufeffk3y-Abc==", "\u202ak3y-Abc==\u202c", "k3y-\u00adAbc==", `"k3y-Abc=="`, `'k3y-Abc=='`,
			"`k3y-Abc==`", "```\nk3y-Abc==\n```", "“k3y-Abc==”", "„k3y-Abc==“", "«\u00a0k3y-Abc==\u00a0»",
			"bEaReR  k3y-Abc==", "Bearer Bearer k3y-Abc==", "Authorization: Bearer k3y-Abc==",
			"authorization:k3y-Abc==", "Authorization: Token k3y-Abc==", "X-Api-Key: k3y-Abc==",
			`"Authorization: Bearer k3y-Abc=="`, "KEY=k3y-Abc==", `export ACME_API_TOKEN="k3y-Abc=="`,
			"GITHUB_PAT = 'k3y-Abc=='", "api-key: k3y-Abc==",
		} {
			Expect(UnwrapToken(pasted)).To(Equal("k3y-Abc=="), pasted)
		}
	})

	It("keeps what may be a part of it", func() {
		for _, token := range []string{
			"token:k3y", "sv=2026&key=abc", "ABCKEY==", "MYKEY=", "API_KEY=", `a"b`, `"abc`, "correct horse",
			"abcBearer x", "a\xffb",
		} {
			Expect(UnwrapToken(token)).To(Equal(token))
		}
	})

	DescribeTable("is empty when only the wrapping was pasted:", func(pasted string) {
		Expect(UnwrapToken(pasted)).To(BeEmpty())
	}, Entry(nil, ""), Entry(nil, "\u200b \ufeff"), Entry(nil, "Bearer"), Entry(nil, "Authorization: Bearer "),
		Entry(nil, `""`), Entry(nil, "KEY=\"\""))
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
