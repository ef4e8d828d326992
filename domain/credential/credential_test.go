package credential

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestCredential(t *testing.T) {
	suite.Run(t, "The fields of a credential")
}

// entered returns the reader of a form.
func entered(values Values) func(string) string {
	return func(name string) string { return values[name] }
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

	It("leaves out empty values", func() {
		Expect(Values{"token": "x", "org": ""}.Encode()).To(Equal("x"))
	})

	DescribeTable("reads no values from a damaged text", func(text string) { Expect(Decode(text)).To(BeEmpty()) },
		Entry(nil, "\x01x"), Entry(nil, "\x015:token"), Entry(nil, "\x015:token9:x"), Entry(nil, "\x01-1:"),
		Entry(nil, "\x0199999999999999999999:x"))
})

var _ = Describe("An address", Label("U29"), func() {
	hosts := []string{"cms.example", "shop.example:8443", "*.tenant.example", "http://127.0.0.1:9000",
		"secure.example:443", "http://plain.example:80", "my_host.example"}
	parse := func(text string) (string, error) {
		values, err := Fields{{Name: "url", Hosts: hosts}}.Parse(entered(Values{"url": text}))
		return values["url"], err
	}

	DescribeTable("is read in one form", func(text, address string) {
		Expect(parse(text)).To(Equal(address))
	},
		Entry("as it is", "https://cms.example", "https://cms.example"),
		Entry("without a scheme", "cms.example/wiki", "https://cms.example/wiki"),
		Entry("with a slash at its end", "https://cms.example/", "https://cms.example"),
		Entry("in capitals", " HTTPS://CMS.Example/Wiki/ ", "https://cms.example/Wiki"),
		Entry("with the default port", "https://cms.example:443/a", "https://cms.example/a"),
		Entry("whose host is listed with the default port", "https://secure.example", "https://secure.example"),
		Entry("in plain http whose host is listed with the default port", "http://plain.example",
			"http://plain.example"),
		Entry("with an underscore", "my_host.example", "https://my_host.example"),
		Entry("with a listed port", "shop.example:8443", "https://shop.example:8443"),
		Entry("below a wildcard", "a.b.tenant.example", "https://a.b.tenant.example"),
		Entry("in plain http where it is listed so", "http://127.0.0.1:9000/x", "http://127.0.0.1:9000/x"),
	)

	DescribeTable("is refused", func(text string, reason Reason) {
		_, err := parse(text)
		wrong := new(ValueError)
		Expect(errors.As(err, &wrong)).To(BeTrue())
		Expect(wrong.Reason).To(Equal(reason))
		Expect(err.Error()).NotTo(ContainSubstring(text))
	},
		Entry("at another host", "https://evil.example", Elsewhere),
		Entry("at another port", "https://cms.example:8443", Elsewhere),
		Entry("at the default port of a host with a port", "https://shop.example", Elsewhere),
		Entry("in plain http", "http://cms.example", Elsewhere),
		Entry("in https where http is listed", "https://127.0.0.1:9000", Elsewhere),
		Entry("at the domain of a wildcard itself", "https://tenant.example", Elsewhere),
		Entry("at a domain that ends like a wildcard", "https://eviltenant.example", Elsewhere),
		Entry("with a listed host before another", "https://cms.example.evil.example", Elsewhere),
		Entry("with a user", "https://cms.example@evil.example", Malformed),
		Entry("with a user and a password", "https://a:b@cms.example", Malformed),
		Entry("with a backslash", `https://evil.example\@cms.example`, Malformed),
		Entry("with a query", "https://cms.example/?a=b", Malformed),
		Entry("with a fragment", "https://cms.example/#a", Malformed),
		Entry("with percent-encoding", "https://cms.example/%2e%2e/admin", Malformed),
		Entry("with dots for a folder", "https://cms.example/a/../admin", Malformed),
		Entry("with an empty segment", "https://cms.example//evil.example", Malformed),
		Entry("with a space", "https://cms.example /", Malformed),
		Entry("with a line break", "https://cms.example\n.evil.example", Control),
		Entry("with another scheme", "file:///etc/passwd", Malformed),
		Entry("in IPv6", "https://[::1]", Malformed),
		Entry("with letters that look like others", "https://cms.examplе", Malformed),
		Entry("without a host", "https://", Malformed),
	)
})

var _ = Describe("The fields of a credential", Label("B23", "F9"), func() {
	token := Field{Name: "token", Secret: true}

	DescribeTable("are refused with the remedy", func(remedy string, fields ...Field) {
		mistakes := Fields(fields).Check()
		Expect(mistakes).To(ContainElement(MatchError(ContainSubstring(remedy))))
	},
		Entry("without a name", "number 2: the name is not valid", token, Field{}),
		Entry("with a name in capitals", "number 1: the name is not valid", Field{Name: "Token", Secret: true}),
		Entry("with a name twice", "number 2: the name token is used twice", token, token),
		Entry("with a token in clear", "the field token is not secret", Field{Name: "token"}),
		Entry("without a secret", "no field is required and secret", Field{Name: "user"}),
		Entry("with an optional secret only", "no field is required and secret",
			Field{Name: "token", Secret: true, Optional: true}),
		Entry("with a pattern that is none", "the pattern is not a regular expression", token,
			Field{Name: "user", Pattern: "["}),
		Entry("with a default that does not match", "the default does not match", token,
			Field{Name: "user", Pattern: "[a-z]+", Default: "1"}),
		Entry("with a pattern whose parentheses do not match", "the pattern is not a regular expression", token,
			Field{Name: "user", Pattern: "a)|(?:b"}),
		Entry("with a secret address", "a secret field has hosts",
			Field{Name: "token", Secret: true, Hosts: []string{"a.example"}}),
		Entry("with a default for a secret", "a secret field has a default",
			Field{Name: "token", Secret: true, Default: "x"}),
		Entry("with a host that is a URL with a path", "a host is not valid", token,
			Field{Name: "url", Hosts: []string{"https://a.example/"}}),
		Entry("with every host", "a host is not valid", token, Field{Name: "url", Hosts: []string{"*"}}),
		Entry("with every host of a top-level domain", "a host is not valid", token,
			Field{Name: "url", Hosts: []string{"*.com"}}),
		Entry("in large numbers", "there are 9 fields", token, token, token, token, token, token, token, token, token),
	)

	It("accept the values of an older connection only if they are still valid", func() {
		fields := Fields{token, {Name: "org", Optional: true}, {Name: "url", Hosts: []string{"a.example"}}}
		Expect(fields.Accept(Values{"token": "x", "url": "https://a.example"})).To(BeTrue())
		Expect(fields.Accept(Values{"token": "x"})).To(BeFalse())
		Expect(fields.Accept(Values{"token": "x", "url": "https://b.example"})).To(BeFalse())
		Expect(Fields(nil).Accept(Values{"token": strings.Repeat("x", 4096)})).To(BeTrue())
		Expect(Fields(nil).Accept(Values{"user": "x"})).To(BeFalse())
	})

	It("are limited together, which is reported at the longest", func() {
		fields := Fields{token, {Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
		long := strings.Repeat("x", 1000)
		_, err := fields.Parse(entered(Values{
			"token": long,
			"a":     long,
			"b":     long + "y",
			"c":     long,
			"d":     long,
		}))
		Expect(err).To(MatchError("the field b is too long"))
	})

	It("change only the values of secrets", func() {
		fields := Fields{token, {Name: "user"}}
		Expect(fields.WithSecrets(Values{"token": "x", "user": "ann"}, func() string {
			return "y"
		})).To(Equal(Values{"token": "y", "user": "ann"}))
		Expect(fields.Secrets(Values{"token": "x", "user": "ann"})).To(Equal([]string{"x"}))
	})
})

var _ = Describe("A target", Label("U30"), func() {
	fields := Fields{{Name: "url", Hosts: []string{"*.a.example", "http://127.0.0.1:9000"}}, {Name: "user"},
		{Name: "site", Hosts: []string{"a.example"}, Optional: true}}

	It("is the address of a person with a path", func() {
		target, err := fields.ParseTarget("{url}/mcp")
		Expect(err).NotTo(HaveOccurred())
		url, allowed := target.URL(Values{"url": "https://x.a.example"})
		Expect(allowed).To(BeTrue())
		Expect(url).To(Equal("https://x.a.example/mcp"))
		_, allowed = target.URL(Values{"url": "https://b.example"})
		Expect(allowed).To(BeFalse())
		Expect(target.Examples()).To(Equal([]string{"https://www.a.example/mcp", "http://127.0.0.1:9000/mcp"}))
	})

	DescribeTable("is refused with the remedy", func(text, remedy string) {
		_, err := fields.ParseTarget(text)
		Expect(err).To(MatchError(ContainSubstring(remedy)))
	},
		Entry("of a field that does not exist", "{host}/mcp", "is unknown"),
		Entry("of a field without hosts", "{user}/mcp", "list its hosts"),
		Entry("of an optional field", "{site}/mcp", "list its hosts"),
		Entry("that continues the host", "{url}.evil.example", "write it like {url}"),
		Entry("with a user", "{url}@evil.example", "write it like"), Entry("without an end", "{url", "write it like"),
		Entry("with dots", "{url}/../x", "write it like"))
})

// FuzzAddress reads only addresses at listed hosts, in a form that reads the same again.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"https://a.example/x", "a.example:443", "https://a.example@b.example",
		"http://a.example", "HTTPS://A.example//"} {
		f.Add(seed)
	}
	fields := Fields{{Name: "url", Hosts: []string{"a.example"}}}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := fields.Parse(entered(Values{"url": text}))
		if err != nil {
			return
		}
		address := values["url"]
		if address != "https://a.example" && !strings.HasPrefix(address, "https://a.example/") ||
			strings.ContainsAny(address, "@?#\\% ") {
			t.Fatalf("%q became %q", text, address)
		}
		if again, err := fields.Parse(entered(values)); err != nil || again["url"] != address {
			t.Fatalf("%q became %q, then %q, %v", text, address, again["url"], err)
		}
	})
}

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
