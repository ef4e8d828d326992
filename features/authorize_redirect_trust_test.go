package features_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// BeASafePage matches an error page with an incident id, without a redirect, a cookie or echoed
// input.
func BeASafePage(status int, code string) types.GomegaMatcher {
	return And(
		BeAPage(status, "<code>"+code+"</code>"),
		HaveField("Header", And(
			HaveKeyWithValue("Cache-Control", []string{"no-store"}),
			HaveKeyWithValue("X-Frame-Options", []string{"DENY"}),
			Not(HaveKey("Set-Cookie")), Not(HaveKey("Access-Control-Allow-Origin")), Not(HaveKey("Refresh")))),
		HaveField("Text", And(
			MatchRegexp(`<dt>Incident</dt><dd><code>[A-Z2-7]{12}</code>`), Not(ContainSubstring("evil")),
			Not(ContainSubstring("callback")),
			Not(MatchRegexp(`(?i)<(a|form|button|script|meta http-equiv)\b`)))),
	)
}

// ask sends a raw query, which may be malformed.
func (c *Client) ask(ctx SpecContext, query string) Response {
	GinkgoHelper()
	return Get(ctx, c.World.Issuer+"/oauth/authorize?"+query)
}

var _ = Describe("Withholding redirects", Label("OAuth 2.1", "N1", "A40"), Ordered, ContinueOnFailure, func() {
	var world *World
	var client *Client
	var before int64
	BeforeAll(func() { world = NewWorld() })
	BeforeEach(func() {
		world.Clock.Advance(time.Minute) // refills the fetch budget
		client, before = world.NewClient(), world.Clients.Fetches()
	})
	fetches := func() int64 { return world.Clients.Fetches() - before }

	DescribeTable("shows a page when the query", func(ctx SpecContext, status int, spoil func(query string) string) {
		Expect(client.ask(ctx, spoil(client.Request().Encode()))).To(BeASafePage(status, "invalid_request"))
		Expect(fetches()).To(BeZero())
	},
		Entry("has 24577 bytes", Label("A2"), 414, func(q string) string {
			return q + "&evil=" + strings.Repeat("x", 24577-len(q)-6)
		}),
		Entry("has half an escape", Label("A3"), 400, func(q string) string { return q + "&evil=%z" }),
		Entry("ends in the middle of an escape", Label("A3"), 400, func(q string) string { return q + "&evil=%4" }),
		Entry("has a semicolon", Label("A3"), 400, func(q string) string { return q + ";evil=1" }),
		Entry("has two clients", Label("A5"), 400, func(q string) string { return q + "&client_id=evil" }),
		Entry("has two redirect URIs", Label("A5"), 400, func(q string) string {
			return "redirect_uri=https%3A%2F%2Fevil.example&" + q
		}),
		Entry("has two states", Label("A5"), 400, func(q string) string { return q + "&state=evil" }),
		Entry("has no client", Label("A7"), 400, func(q string) string {
			return strings.Replace(q, "client_id=", "evil=", 1)
		}),
		Entry("has an empty client", Label("A4", "A7"), 400, func(string) string {
			return "client_id=&response_type=code"
		}),
		Entry("is empty", Label("A7"), 400, func(string) string { return "" }),
	)

	DescribeTable("shows a page and fetches nothing for a client_id",
		Label("A7", "C40"), func(ctx SpecContext, id string) {
			parameters := client.Request()
			parameters.Set("client_id", id)
			Expect(client.AskFor(ctx, parameters)).To(BeASafePage(400, "invalid_client"))
			Expect(fetches()).To(BeZero())
		},
		Entry("that is a word", Label("C1"), "evil-client"),
		Entry("over http", Label("C1"), "http://evil.example/c.json"),
		Entry("in capitals", Label("C1"), "HTTPS://evil.example/c.json"),
		Entry("with a leading space", Label("C1"), " https://evil.example/c.json"),
		Entry("beyond ASCII", Label("C1"), "https://evil.example/ä"),
		Entry("with a line break", Label("C1"), "https://evil.example/\r\nX: y"),
		Entry("with a backslash", Label("C1"), `https://evil.example\@good.example/c`),
		Entry("of 2049 bytes", Label("C1"), "https://evil.example/"+strings.Repeat("x", 2049-21)),
		Entry("with a user", Label("C2"), "https://good.example@evil.example/c"),
		Entry("with an empty user", Label("C2"), "https://@evil.example/c"),
		Entry("without a host", Label("C2"), "https:///evil.json"),
		Entry("without a path", Label("C3"), "https://evil.example"),
		Entry("with a query instead of a path", Label("C3"), "https://evil.example?x=/c.json"),
		Entry("with a dot segment", Label("C4"), "https://evil.example/a/../c.json"),
		Entry("with an escaped dot segment", Label("C4"), "https://evil.example/a/.%2E/c.json"),
		Entry("with an empty fragment", Label("C5"), "https://evil.example/c.json#"),
		Entry("with a javascript: scheme", Label("C1"), "javascript:alert('evil')"),
		Entry("with a file: scheme", Label("C1"), "file:///etc/evil"),
	)

	It("tells the developer of a client what a client_id must be", Label("C40", "C1"), func(ctx SpecContext) {
		parameters := client.Request()
		parameters.Set("client_id", "my-client")
		page := client.AskFor(ctx, parameters)
		Expect(page).To(BeASafePage(400, "invalid_client"))
		Expect(page.Text).To(ContainSubstring("the client_id must be the https URL of a metadata document"))
	})

	DescribeTable("shows a page for a redirect_uri", func(ctx SpecContext, target string) {
		parameters := client.Request()
		parameters.Set("redirect_uri", target)
		parameters.Set("response_type", "evil") // other errors are not sent to an untrusted address
		Expect(client.AskFor(ctx, parameters)).To(BeASafePage(400, "invalid_request"))
		Expect(fetches()).To(BeEquivalentTo(1))
	},
		Entry("that is missing", Label("A10"), ""), Entry("that is relative", Label("A11"), "/callback"),
		Entry("without a scheme", Label("A11"), "//evil.example/callback"),
		Entry("with an empty fragment", Label("A11"), "http://127.0.0.1:4321/callback#"),
		Entry("with a fragment", Label("A11"), "https://client.example/callback#evil"),
		Entry("with a user", Label("A11"), "https://client.example@evil.example/callback"),
		Entry("with an empty user", Label("A11"), "http://@127.0.0.1:4321/callback"),
		Entry("with a backslash", Label("A11"), `https://client.example\@evil.example/callback`),
		Entry("with a line break", Label("A11"), "https://client.example/callback\r\nevil: 1"),
		Entry("with a space", Label("A11"), "https://client.example/callback "),
		Entry("beyond ASCII", Label("A11"), "https://client.example/cällback"),
		Entry("on another host", Label("A12", "C46"), "https://evil.example/callback"),
		Entry("on a host with the same prefix", Label("A12"), "https://client.example.evil.example/callback"),
		Entry("in capitals", Label("A12"), "https://Client.example/callback"),
		Entry("with the default port", Label("A12"), "https://client.example:443/callback"),
		Entry("with a trailing slash", Label("A12"), "https://client.example/callback/"),
		Entry("with a dot segment", Label("A12"), "https://client.example/x/../callback"),
		Entry("with an escape", Label("A12"), "https://client.example/c%61llback"),
		Entry("with an additional query", Label("A12"), "https://client.example/callback?evil=1"),
		Entry("with an additional empty query", Label("A12"), "https://client.example/callback?"),
		Entry("over http on the web", Label("A12"), "http://client.example/callback"),
		Entry("on another loopback name", Label("A13"), "http://localhost:4321/callback"),
		Entry("on a short loopback address", Label("A13"), "http://127.1:4321/callback"),
		Entry("on loopback over https", Label("A13"), "https://127.0.0.1:4321/callback"),
		Entry("at port 0", Label("A13"), "http://127.0.0.1:0/callback"),
		Entry("at port 65536", Label("A13"), "http://127.0.0.1:65536/callback"),
		Entry("at an empty port", Label("A13"), "http://127.0.0.1:/callback"),
		Entry("at two ports", Label("A13"), "http://127.0.0.1:1:2/callback"),
		Entry("with a port in the user part", Label("A13"), "http://127.0.0.1:4321@evil.example/callback"),
		Entry("at another path on loopback", Label("A13"), "http://127.0.0.1:4321/evil"),
		Entry("with a private scheme", Label("A14"), "cursor://evil/callback"),
		Entry("with a javascript: scheme", Label("A14"), "javascript:alert('evil')"),
		Entry("with a data: scheme", Label("A14"), "data:text/html,evil"),
		Entry("with a file: scheme", Label("A14"), "file:///etc/evil"),
	)

	DescribeTable("shows a page when the client's document excludes",
		Label("A18"), func(ctx SpecContext, status int, code, member string) {
			client = world.ClientAt(client.Redirect, ","+member)
			Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(status, code))
		},
		Entry("codes", Label("C32"), 400, "invalid_client", `"response_types":["token"]`),
		Entry("bound tokens", Label("C34", "C44"), 400, "unauthorized_client", `"dpop_bound_access_tokens":true`),
		Entry("pushed requests", Label("C34", "C44"), 400, "unauthorized_client",
			`"require_pushed_authorization_requests":true`),
		Entry("public clients", Label("C30", "C44"), 400, "unauthorized_client",
			`"token_endpoint_auth_method":"tls_client_auth"`),
	)
})
