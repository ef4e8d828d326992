package secret

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/features/suite"
)

func TestPresentation(t *testing.T) {
	suite.Run(t, "Presenting a credential")
}

// one parses entries without a mistake.
func one(entries ...string) Presentation {
	GinkgoHelper()
	p, mistakes := Parse(entries, nil)
	Expect(mistakes).To(BeEmpty())
	return p
}

func newRequest(address string) *http.Request {
	GinkgoHelper()
	r, err := http.NewRequest(http.MethodPost, address, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	return r
}

var _ = Describe("A presentation", Label("U18"), func() {
	DescribeTable("renders", func(entry, header string) {
		c, err := one(entry).Render(credential.Values{"token": "s3cret"})
		Expect(err).NotTo(HaveOccurred())
		r := newRequest("http://127.0.0.1/")
		c.AddTo(r)
		Expect(r.Header).To(Equal(http.Header{"X-Key": {header}}))
	},
		Entry("text and a field", "X-Key: a {token} b", "a s3cret b"),
		Entry("braces", "X-Key: {{{token}}}", "{s3cret}"),
		Entry("base64 of text and a field", "X-Key: {base64(user:token)}", "dXNlcjpzM2NyZXQ="),
		Entry("words that only contain the name of a field", "X-Key: {urlquery(x-token:token token2)}",
			"x-token%3As3cret%20token2"),
	)

	DescribeTable("refuses a token that would end its header or parameter, without repeating it", func(token string) {
		for _, entry := range []string{"X-Key: {token}", "X-Key: a {token}", "?key={token}"} {
			_, err := one(entry).Render(credential.Values{"token": token})
			Expect(err).To(MatchError(And(ContainSubstring("would have a control character"),
				Not(ContainSubstring("s3cret")))))
		}
	}, Entry(nil, "s3cret\nX-Admin: 1"), Entry(nil, "s3cret\r"), Entry(nil, "s3cret\x00"), Entry(nil, "s3cret\x7f"),
		Entry(nil, "s3cret\t"))

	It("replaces a query parameter in any spelling and keeps the others", func() {
		c, err := one("?key={token}").Render(credential.Values{"token": "a&b"})
		Expect(err).NotTo(HaveOccurred())
		r := newRequest("http://127.0.0.1/?k%65y=x&a=%62&&key&%zz")
		given := r.URL
		c.AddTo(r)
		Expect(r.URL.RawQuery).To(Equal("a=%62&&%zz&key=a%26b"))
		Expect(given.RawQuery).To(Equal("k%65y=x&a=%62&&key&%zz"), "requests share the URL")
	})
})

// FuzzPresentation sends any token with any entry: the server reads exactly one more header or
// parameter, with the rendered value.
func FuzzPresentation(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, token string) {
		p, mistakes := Parse([]string{text}, nil)
		if len(mistakes) > 0 {
			return
		}
		c, err := p.Render(credential.Values{"token": token})
		if err != nil {
			return
		}
		request, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp?kept=1", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Kept", "1")
		c.AddTo(request)
		var wire bytes.Buffer
		if err := request.Write(&wire); err != nil {
			t.Fatalf("%q with %q: %v", text, token, err)
		}
		got, err := http.ReadRequest(bufio.NewReader(&wire))
		if err != nil {
			t.Fatalf("%q with %q: %v", text, token, err)
		}
		checkOnly(t, p.entries[0], c[0].text, got)
	})
}

// checkOnly fails unless the request has the entry besides the header and parameter that it had
// before.
func checkOnly(t *testing.T, e entry, value string, got *http.Request) {
	headers, query := url.Values{"X-Kept": {"1"}, "User-Agent": {"Go-http-client/1.1"}, "Content-Length": {"4"}},
		url.Values{"kept": {"1"}}
	if e.kind == parameter {
		query.Set(e.name, value)
	} else {
		headers.Set(e.name, strings.Trim(value, " \t"))
	}
	if url.Values(got.Header).Encode() != headers.Encode() || got.URL.Query().Encode() != query.Encode() {
		t.Fatalf("%s with %q became %q and %q", e, value, got.Header, got.URL.RawQuery)
	}
}

// FuzzTemplate prints text without braces as it is, and contains a token only if it uses one.
func FuzzTemplate(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseTemplate(text, []string{credential.Token}, false)
		if err != nil {
			return
		}
		first, second := parsed.render(credential.Values{"token": "1"}),
			parsed.render(credential.Values{"token": "2"})
		if (len(parsed.used) > 0) == (first == second) {
			t.Fatalf("%q uses the token: %v, but renders %q and %q", text, len(parsed.used) > 0,
				first, second)
		}
		if literal := strings.NewReplacer("{", "{{", "}", "}}").Replace(first); literally(t, literal) != first {
			t.Fatalf("%q in doubled braces is %q", first, literally(t, literal))
		}
	})
}

func literally(t *testing.T, text string) string {
	parsed, err := parseTemplate(text, nil, false)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return parsed.render(nil)
}
