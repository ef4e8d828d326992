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
		target, err := ParseRedirectURI(raw, schemes)
		if err != nil {
			return false
		}
		for _, published := range registered {
			uri, err := ParseRedirectURI(published, schemes)
			if err == nil && target.Matches(uri) {
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

	DescribeTable("refuses", func(raw string) { Expect(allowed(raw)).To(BeFalse()) },
		Entry(nil, ""), Entry(nil, "/callback"), Entry(nil, "localhost/callback"), Entry(nil, "//localhost/callback"),
		Entry(nil, "http://localhost/callback/"), Entry(nil, "http://localhost/Callback"),
		Entry(nil, "http://LOCALHOST/callback"),
		Entry(nil, "http://localhost./callback"), Entry(nil, "HTTP://localhost/callback"),
		Entry(nil, "https://localhost/callback"),
		Entry(nil, "http://localhost:0/callback"), Entry(nil, "http://localhost:65536/callback"),
		Entry(nil, "http://localhost:000000080/callback"), Entry(nil, "http://localhost:/callback"),
		Entry(nil, "http://localhost:+80/callback"), Entry(nil, "http://localhost:8x/callback"),
		Entry(nil, "http://localhost:80:80/callback"),
		Entry(nil, "http://u@localhost/callback"), Entry(nil, "http://u:p@127.0.0.1:9/cb"),
		Entry(nil, "http://@localhost/callback"),
		Entry(nil, "http://localhost/callback#"), Entry(nil, "http://localhost/callback#x"),
		Entry(nil, "http://localhost/callback?x"),
		Entry(nil, "http://localhost/x/../callback"), Entry(nil, "http://localhost/%63allback"),
		Entry(nil, `http://localhost\callback`),
		Entry(nil, "http://127.1/cb"), Entry(nil, "http://127.0.0.2/cb"), Entry(nil, "http://0x7f.1/cb"),
		Entry(nil, "http://2130706433/cb"),
		Entry(nil, "http://127.0.0.1.nip.io/cb"), Entry(nil, "http://localhost.evil.example/callback"),
		Entry(nil, "http://localhost/callback "),
		Entry(nil, "http://localhost:3000/cb"), Entry(nil, "http://[0:0:0:0:0:0:0:1]/cb"),
		Entry(nil, "http://[::1%25lo]/cb"),
		Entry(nil, "http://c.example/cb"), Entry(nil, "https://c.example:443/cb"), Entry(nil, "https://C.example/cb"),
		Entry(nil, "https://c.example/cb/"),
		Entry(nil, "https://c.example/cb?x=2"), Entry(nil, "https://c.example/cb?"),
		Entry(nil, "https://c.example.evil/cb"), Entry(nil, "https://evil@c.example/cb"),
		Entry(nil, "javascript:alert(1)"), Entry(nil, "data:text/html,x"), Entry(nil, "file:///etc/passwd"),
		Entry(nil, "http://localhost/call\x00back"),
	)

	DescribeTable("refuses a target that is never allowed, also when a client has published it",
		func(raw string, schemes ...string) {
			_, err := ParseRedirectURI(raw, schemes)
			Expect(err).To(Refused(InvalidRequest))
		},
		Entry(nil, "http://localhost.evil.example/cb"), Entry(nil, "http://localhostile.example/cb"),
		Entry(nil, "http://127.0.0.1.evil.example/cb"),
		Entry(nil, "http://c.example/cb"), Entry(nil, "https:///cb"), Entry(nil, "https:c.example/cb"),
		Entry(nil, "https://u@c.example/cb"),
		Entry(nil, "cursor://a/cb"), Entry(nil, "Cursor://a/cb", "cursor"),
		Entry("one that is too long", "https://c.example/"+strings.Repeat("x", maxRedirectURILength)),
	)
	DescribeTable("lets a person copy the callback URL to another computer",
		Label("B21"), func(redirect string, allowed bool) {
			request := &AuthorizationRequest{redirect: RedirectURI{redirect}}
			if allowed {
				Expect(request.CheckCallbackCopy(new(Settings))).To(Succeed())
			} else {
				Expect(request.CheckCallbackCopy(new(Settings))).To(Refused(InvalidRequest))
			}
		},
		Entry("of an app at 127.0.0.1", "http://127.0.0.1:4321/cb", true),
		Entry("of an app at localhost", "http://localhost/callback", true),
		Entry("of an app at ::1", "http://[::1]:8080/cb", true),
		Entry("but not of a web site", "https://c.example/cb", false),
		Entry("but not of https at localhost", "https://localhost/cb", false),
		Entry("but not of an installed app", "cursor://localhost/cb", false),
	)
	It("never redirects to a script or a file, even when a setting allows the scheme", func() {
		for _, scheme := range forbiddenSchemes {
			_, err := ParseRedirectURI(scheme+"://a/cb", []string{scheme})
			Expect(err).To(Refused(InvalidRequest), scheme)
		}
	})
})

var _ = Describe("Loopback origins of web pages", Label("G1"), func() {
	DescribeTable("are allowed", func(origin string) { Expect(IsLoopbackOrigin(origin)).To(BeTrue()) },
		Entry(nil, "http://localhost"), Entry(nil, "http://localhost:6274"), Entry(nil, "https://127.0.0.1:65535"),
		Entry(nil, "http://[::1]:1"), Entry(nil, "https://[::1]"),
	)
	DescribeTable("are no other texts", func(origin string) { Expect(IsLoopbackOrigin(origin)).To(BeFalse()) },
		Entry(nil, ""), Entry(nil, "null"), Entry(nil, "loopback"), Entry(nil, "localhost"),
		Entry(nil, "localhost:6274"), Entry(nil, "//localhost"),
		Entry(nil, "ftp://localhost"), Entry(nil, "ws://localhost"), Entry(nil, "file://localhost"),
		Entry(nil, "chrome-extension://localhost"), Entry(nil, "http:localhost"),
		Entry(nil, "http://localhost/"), Entry(nil, "http://localhost:6274/x"), Entry(nil, "http://localhost?x"),
		Entry(nil, "http://localhost#x"),
		Entry(nil, "http://localhost:"), Entry(nil, "http://localhost:0"), Entry(nil, "http://localhost:65536"),
		Entry(nil, "http://localhost:8x"), Entry(nil, "http://localhost:80:80"),
		Entry(nil, "http://evil@localhost"), Entry(nil, "http://localhost@evil.example"),
		Entry(nil, "http://localhost:80@evil.example"),
		Entry(nil, "http://localhost.evil.example"), Entry(nil, "http://evil.example/http://localhost"),
		Entry(nil, "http://evil.example://localhost"),
		Entry(nil, "http://127.0.0.1.nip.io"), Entry(nil, "http://127.0.0.2"), Entry(nil, "http://127.1"),
		Entry(nil, "http://0.0.0.0"), Entry(nil, "http://[::ffff:127.0.0.1]"),
		Entry(nil, "http://::1"), Entry(nil, "http://localhost."), Entry(nil, "http://foo.localhost"),
		Entry(nil, " http://localhost"), Entry(nil, "http://localhost http://evil.example"),
	)
})
