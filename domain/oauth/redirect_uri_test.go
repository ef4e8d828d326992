package oauth

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Matching a redirect URI", Label("A11", "A12", "A13", "A14", "N3"), func() {
	registered := []string{"http://localhost/callback", "http://127.0.0.1:3000/cb", "http://[::1]/cb",
		"https://c.example/cb", "https://c.example/cb?x=1", "cursor://a/cb"}
	allowed := func(raw string, schemes ...string) bool {
		target, err := parseRedirectURI(raw, schemes)
		if err != nil {
			return false
		}
		for _, published := range registered {
			uri, err := parseRedirectURI(published, schemes)
			if err == nil && target.matches(uri) {
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
			_, err := parseRedirectURI(raw, schemes)
			Expect(err).To(Refused(InvalidRequest))
		},
		Entry(nil, "http://localhost.evil.example/cb"), Entry(nil, "http://localhostile.example/cb"),
		Entry(nil, "http://127.0.0.1.evil.example/cb"),
		Entry(nil, "http://c.example/cb"), Entry(nil, "https:///cb"), Entry(nil, "https:c.example/cb"),
		Entry(nil, "https://u@c.example/cb"),
		Entry(nil, "cursor://a/cb"), Entry(nil, "Cursor://a/cb", "cursor"),
		Entry("one that is too long", "https://c.example/"+strings.Repeat("x", maxRedirectURILength)),
	)
	It("never redirects to a script or a file, even when a setting allows the scheme", func() {
		for _, scheme := range forbiddenSchemes {
			_, err := parseRedirectURI(scheme+"://a/cb", []string{scheme})
			Expect(err).To(Refused(InvalidRequest), scheme)
		}
	})
})

var _ = Describe("Loopback origins of web pages", Label("G1"), func() {
	It("are allowed", func() {
		for _, origin := range []string{
			"http://localhost", "http://localhost:6274", "https://127.0.0.1:65535", "http://[::1]:1",
			"https://[::1]",
		} {
			Expect(IsLoopbackOrigin(origin)).To(BeTrue(), origin)
		}
	})
	It("are not other texts", func() {
		for _, origin := range []string{
			"", "null", "loopback", "localhost", "localhost:6274", "//localhost", "ftp://localhost",
			"ws://localhost", "file://localhost", "chrome-extension://localhost", "http:localhost",
			"http://localhost/", "http://localhost:6274/x", "http://localhost?x", "http://localhost#x",
			"http://localhost:", "http://localhost:0", "http://localhost:65536", "http://localhost:8x",
			"http://localhost:80:80", "http://evil@localhost", "http://localhost@evil.example",
			"http://localhost:80@evil.example", "http://localhost.evil.example",
			"http://evil.example/http://localhost", "http://evil.example://localhost", "http://127.0.0.1.nip.io",
			"http://127.0.0.2", "http://127.1", "http://0.0.0.0", "http://[::ffff:127.0.0.1]", "http://::1",
			"http://localhost.", "http://foo.localhost", " http://localhost", "http://localhost http://evil.example",
		} {
			Expect(IsLoopbackOrigin(origin)).To(BeFalse(), origin)
		}
	})
})
