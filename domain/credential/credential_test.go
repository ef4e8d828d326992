package credential

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestCredential(t *testing.T) {
	suite.Run(t, "The fields of a credential")
}

var _ = Describe("Encoding values", Label("J16"), func() {
	DescribeTable("keeps every value apart", func(values Values, text string) {
		Expect(values.Encode()).To(Equal(text))
		Expect(Decode(text)).To(Equal(values))
	},
		Entry("of a lone token, as it is", Values{"token": "1:a"}, "1:a"),
		Entry("of several fields, sorted", Values{"user": "ann", "token": "s:3"}, "\x015:token3:s:34:user3:ann"),
		Entry("of a lone field of another name", Values{"key": "x"}, "\x013:key1:x"),
		Entry("of nothing", Values{}, "\x01"),
	)

	DescribeTable("reads no values from a damaged text", func(text string) { Expect(Decode(text)).To(BeEmpty()) },
		Entry(nil, "\x01x"), Entry(nil, "\x015:token"), Entry(nil, "\x015:token9:x"), Entry(nil, "\x01-1:"),
		Entry(nil, "\x0199999999999999999999:x"))
})

var _ = Describe("The fields of a credential", Label("B23", "F9"), func() {
	token := Field{Name: "token", Secret: true}

	DescribeTable("are refused with the remedy", func(remedy string, fields ...Field) {
		mistakes := Fields(fields).Check()
		Expect(mistakes).To(ContainElement(MatchError(ContainSubstring(remedy))))
	},
		Entry("without a name", "number 2: the name is not valid", token, Field{}),
		Entry("with a name twice", "number 2: the name token is used twice", token, token),
		Entry("with a token in clear", "the field token is not secret", Field{Name: "token"}),
		Entry("without a secret", "no field is required and secret", Field{Name: "user"}),
		Entry("with a pattern that is none", "the pattern is not a regular expression", token,
			Field{Name: "user", Pattern: "["}),
		Entry("with a default that does not match", "the default does not match", token,
			Field{Name: "user", Pattern: "[a-z]+", Default: "1"}),
		Entry("with a default for a secret", "a secret field has a default",
			Field{Name: "token", Secret: true, Default: "x"}),
		Entry("in large numbers", "there are 9 fields", token, token, token, token, token, token, token, token, token),
	)

	It("accept the values of an older connection only if they are still valid", func() {
		fields := Fields{token, {Name: "org", Optional: true}, {Name: "url", Pattern: "https://a[.]example"}}
		Expect(fields.Accept(Values{"token": "x", "url": "https://a.example"})).To(BeTrue())
		Expect(fields.Accept(Values{"token": "x"})).To(BeFalse())
		Expect(fields.Accept(Values{"token": "x", "url": "https://b.example"})).To(BeFalse())
		Expect(Fields(nil).Accept(Values{"token": strings.Repeat("x", 4096)})).To(BeTrue())
		Expect(Fields(nil).Accept(Values{"user": "x"})).To(BeFalse())
	})

	It("change only the values of secrets", func() {
		fields := Fields{token, {Name: "user"}}
		Expect(fields.WithSecrets(Values{"token": "x", "user": "ann"}, func() string {
			return "y"
		})).To(Equal(Values{"token": "y", "user": "ann"}))
		Expect(fields.Secrets(Values{"token": "x", "user": "ann"})).To(Equal([]string{"x"}))
	})
})

// FuzzValues decodes what it encodes, and encodes different values differently.
func FuzzValues(f *testing.F) {
	f.Add("user", "ann", "token", "x")
	f.Add("token", "5:token", "a", "1:")
	f.Fuzz(func(t *testing.T, name, value, other, text string) {
		values := Values{name: value, other: text}
		got := Decode(values.Encode())
		for _, field := range []string{name, other} {
			if len(value) < 1<<16 && len(text) < 1<<16 && len(field) < 1<<16 &&
				!strings.HasPrefix(values[Token], manyFields) && got[field] != values[field] {
				t.Fatalf("%q became %q", values, got)
			}
		}
		_ = Decode(text) // any text decodes without a panic
	})
}
