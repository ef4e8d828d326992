package secret

import (
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
		Entry("NUL", "KEY", "s3cret\x00", "the variable KEY contains NUL"),
		Entry("an unknown field", "KEY", "s3cret{user}", "the variable KEY: it has an unknown field user"),
	)

	It("is rendered in the order of its names, and finds the key, and its lines, in a text", func() {
		e, mistakes := ParseEnvironment(map[string]string{"B": "Basic {base64(ada:token)}", "A": "{token}",
			"C": "plain"}, nil)
		Expect(mistakes).To(BeEmpty())
		Expect(e.Unused()).To(BeEmpty())
		Expect(e.Variables()).To(Equal([]string{"A", "B", "C"}))
		values := credential.Values{"token": "se cret\"1\nanother-line"}
		rendered, err := e.Render(values)
		Expect(err).NotTo(HaveOccurred())
		Expect(rendered.Environment()).
			To(HaveExactElements("A=se cret\"1\nanother-line",
				"B=Basic YWRhOnNlIGNyZXQiMQphbm90aGVyLWxpbmU=", "C=plain"))
		for _, text := range []string{`key is se cret"1`, "x another-line", `{"key":"se cret\"1\nanother-line"}`,
			"Authorization: YWRhOnNlIGNyZXQiMQphbm90aGVyLWxpbmU", "se+cret%221%0aanother-line"} {
			Expect(e.Finder(values).Finds(text)).To(BeTrue(), text)
		}
		Expect(e.Finder(values).Finds("plain")).To(BeFalse())
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
		values := credential.Values{"token": token}
		rendered, err := e.Render(values)
		if err != nil {
			return
		}
		variables := rendered.Environment()
		if len(variables) != 1 || !strings.HasPrefix(variables[0], name+"=") || strings.ContainsRune(variables[0], 0) {
			t.Fatalf("%q=%q with %q became %q", name, value, token, variables)
		}
		if len(e.Unused()) == 0 && len(token) >= 8 && slices.ContainsFunc(variables, func(v string) bool {
			return !e.Finder(values).Finds(v)
		}) {
			t.Fatalf("%q is not found in %q", token, variables)
		}
	})
}
