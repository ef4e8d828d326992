package secret

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/credential"
)

var _ = Describe("An environment", Label("U23"), func() {
	DescribeTable("refuses, without repeating the value,", func(name, value, mistake string) {
		_, mistakes := ParseEnvironment(map[string]string{name: value}, nil)
		Expect(mistakes).To(ConsistOf(MatchError(And(ContainSubstring(mistake), Not(ContainSubstring("s3cret"))))))
	},
		Entry("a name with a hyphen", "API-KEY", "s3cret", "a name that no variable can have"),
		Entry("a name with an equals sign", "A=B", "s3cret", "a name that no variable can have"),
		Entry("no name", "", "s3cret", "a name that no variable can have"),
		Entry("NUL", "KEY", "s3cret\x00", "the variable KEY contains NUL"),
		Entry("an unknown field", "KEY", "s3cret{user}", "the variable KEY: it has an unknown field user"),
	)

	It("is rendered in the order of its names, and finds the key in a text in any spelling", func() {
		e, mistakes := ParseEnvironment(map[string]string{"B": "Basic {base64(ada:token)}", "A": "{token}",
			"C": "plain"}, nil)
		Expect(mistakes).To(BeEmpty())
		Expect(e.Unused()).To(BeEmpty())
		Expect(e.Sets("C")).To(BeTrue())
		variables, repeats, err := e.Render(credential.Values{"token": "se cret\"1\nanother-line"})
		Expect(err).NotTo(HaveOccurred())
		Expect(variables).
			To(HaveExactElements("A=se cret\"1\nanother-line",
				"B=Basic YWRhOnNlIGNyZXQiMQphbm90aGVyLWxpbmU=", "C=plain"))
		for _, text := range []string{`key is se cret"1`, "x another-line", `{"key":"se cret\"1\nanother-line"}`,
			"Authorization: YWRhOnNlIGNyZXQiMQphbm90aGVyLWxpbmU", "se+cret%221%0aanother-line"} {
			Expect(repeats(text)).To(BeTrue(), text)
		}
		Expect(repeats("plain")).To(BeFalse())
	})

	DescribeTable("finds a key that a program writes", func(token, text string) {
		e, mistakes := ParseEnvironment(map[string]string{"KEY": "{token}"}, nil)
		Expect(mistakes).To(BeEmpty())
		_, repeats, err := e.Render(credential.Values{"token": token})
		Expect(err).NotTo(HaveOccurred())
		Expect(repeats(text)).To(BeTrue())
		Expect(repeats(strings.ToUpper(text))).To(BeTrue(), "in upper case")
		Expect(repeats("an innocent line")).To(BeFalse())
	},
		Entry("as JSON of JavaScript", `s3cret"key&more`, `{"key":"s3cret\"key&more"}`),
		Entry("as JSON of Go", `s3cret"key&more`, `{"key":"s3cret\"key\u0026more"}`),
		Entry("as JSON of JavaScript with a line separator", "s3cret\u2028", "\"s3cret\u2028\""),
		Entry("as JSON of Python", "pässwörd-😀\"", `{"key": "p\u00e4ssw\u00f6rd-\ud83d\ude00\""}`),
		Entry("as JSON of PHP", "s3cret/key", `"s3cret\/key"`),
		Entry("as bytes of Python", "pässwörd-123\n", `b'p\xc3\xa4ssw\xc3\xb6rd-123\n'`),
		Entry("in hex", "sk-live-0123456789", "736b2d6c6976652d30313233343536373839"),
		Entry("in base64 after a name", "sk-live-0123456789",
			base64.StdEncoding.EncodeToString([]byte("ann:sk-live-0123456789"))),
		Entry("in base64 in the middle", "sk-live-0123456789",
			base64.StdEncoding.EncodeToString([]byte("ab:sk-live-0123456789:x"))),
		Entry("in base64 at the third offset", "sk-live-0123456789",
			base64.StdEncoding.EncodeToString([]byte("a:sk-live-0123456789?"))),
		Entry("in base64 for URLs", "sk?live>0123456789",
			base64.URLEncoding.EncodeToString([]byte("ab:sk?live>0123456789~"))),
		Entry("in base64 at the start", "sk-live-01234567",
			base64.StdEncoding.EncodeToString([]byte("sk-live-01234567:x"))),
	)

	It("refuses a key with NUL", func() {
		e, _ := ParseEnvironment(map[string]string{"KEY": "{token}"}, nil)
		_, _, err := e.Render(credential.Values{"token": "s3cret\x00X=1"})
		Expect(err).To(MatchError(And(ContainSubstring("the variable KEY would have a NUL"),
			Not(ContainSubstring("s3cret")))))
	})
})

// FuzzEnvironment renders any token: the result has one variable of that name, and no text of
// another.
func FuzzEnvironment(f *testing.F) {
	f.Fuzz(func(t *testing.T, name, value, token string) {
		e, mistakes := ParseEnvironment(map[string]string{name: value}, nil)
		if len(mistakes) > 0 {
			return
		}
		variables, repeats, err := e.Render(credential.Values{"token": token})
		if err != nil {
			return
		}
		if len(variables) != 1 || !strings.HasPrefix(variables[0], name+"=") || strings.ContainsRune(variables[0], 0) {
			t.Fatalf("%q=%q with %q became %q", name, value, token, variables)
		}
		if len(e.Unused()) == 0 && token != "" && slices.ContainsFunc(variables, func(v string) bool {
			return !repeats(v)
		}) {
			t.Fatalf("%q is not found in %q", token, variables)
		}
	})
}
