package client_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

var _ = Describe("Matching a redirect URI", Label("A11", "A12", "A13", "A14", "N3"), func() {
	registered := []string{"http://localhost/callback", "http://127.0.0.1:3000/cb", "http://[::1]/cb",
		"https://c.example/cb", "https://c.example/cb?x=1", "cursor://a/cb"}
	allowed := func(raw string, schemes ...string) bool {
		target, err := client.ParseRedirectURI(raw, schemes)
		if err != nil {
			return false
		}
		for _, raw := range registered {
			published, err := client.ParseRedirectURI(raw, schemes)
			if err == nil && client.Matches(target, published) {
				return true
			}
		}
		return false
	}

	DescribeTable("accepts", func(raw string) { Expect(allowed(raw)).To(BeTrue()) },
		Entry("the registered loopback name", "http://localhost/callback"),
		Entry("any port on localhost", "http://localhost:51234/callback"),
		Entry("any port on 127.0.0.1", "http://127.0.0.1:65535/cb"),
		Entry("no port where one is registered", "http://127.0.0.1/cb"),
		Entry("any port on ::1", "http://[::1]:8080/cb"),
		Entry("the registered https URI", "https://c.example/cb"),
		Entry("the registered https URI with its query", "https://c.example/cb?x=1"),
	)
	It("accepts a private-use scheme only where the operator allows it", func() {
		Expect(allowed("cursor://a/cb")).To(BeFalse())
		Expect(allowed("cursor://a/cb", "cursor")).To(BeTrue())
		Expect(allowed("cursor://a/cb2", "cursor")).To(BeFalse())
	})

	It("refuses", func() {
		for _, raw := range []string{
			"", "/callback", "localhost/callback", "//localhost/callback", "http://localhost/callback/",
			"http://localhost/Callback", "http://LOCALHOST/callback", "http://localhost./callback",
			"HTTP://localhost/callback", "https://localhost/callback", "http://localhost:0/callback",
			"http://localhost:65536/callback", "http://localhost:000000080/callback", "http://localhost:/callback",
			"http://localhost:+80/callback", "http://localhost:8x/callback", "http://localhost:80:80/callback",
			"http://u@localhost/callback", "http://u:p@127.0.0.1:9/cb", "http://@localhost/callback",
			"http://localhost/callback#", "http://localhost/callback#x", "http://localhost/callback?x",
			"http://localhost/x/../callback", "http://localhost/%63allback", `http://localhost\callback`,
			"http://127.1/cb", "http://127.0.0.2/cb", "http://0x7f.1/cb", "http://2130706433/cb",
			"http://127.0.0.1.nip.io/cb", "http://localhost.evil.example/callback", "http://localhost/callback ",
			"http://localhost:3000/cb", "http://[0:0:0:0:0:0:0:1]/cb", "http://[::1%25lo]/cb", "http://c.example/cb",
			"https://c.example:443/cb", "https://C.example/cb", "https://c.example/cb/", "https://c.example/cb?x=2",
			"https://c.example/cb?", "https://c.example.evil/cb", "https://evil@c.example/cb", "javascript:alert(1)",
			"data:text/html,x", "file:///etc/passwd", "http://localhost/call\x00back",
		} {
			Expect(allowed(raw)).To(BeFalse(), raw)
		}
	})

	DescribeTable("refuses a target that is never allowed, also when a client has published it",
		func(raw string, schemes ...string) {
			_, err := client.ParseRedirectURI(raw, schemes)
			Expect(err).To(Refused(oauth.InvalidRequest))
		},
		Entry(nil, "http://localhost.evil.example/cb"), Entry(nil, "http://localhostile.example/cb"),
		Entry(nil, "http://127.0.0.1.evil.example/cb"),
		Entry(nil, "http://c.example/cb"), Entry(nil, "https:///cb"), Entry(nil, "https:c.example/cb"),
		Entry(nil, "https://u@c.example/cb"),
		Entry(nil, "cursor://a/cb"), Entry(nil, "Cursor://a/cb", "cursor"),
		Entry("one that is too long", "https://c.example/"+strings.Repeat("x", client.MaxRedirectURILength)),
	)
	It("never redirects to a script or a file, even when a setting allows the scheme", func() {
		for _, scheme := range client.ForbiddenSchemes {
			_, err := client.ParseRedirectURI(scheme+"://a/cb", []string{scheme})
			Expect(err).To(Refused(oauth.InvalidRequest), scheme)
		}
	})
})
