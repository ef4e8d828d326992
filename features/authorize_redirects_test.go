package features_test

import (
	"net/http"
	"net/url"
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

	It("shows a page and fetches nothing for a client_id that is no metadata URL",
		Label("A7", "C1", "C2", "C3", "C4", "C5", "C40"), func(ctx SpecContext) {
			for _, id := range []string{"evil-client", "http://evil.example/c.json",
				"https://evil.example/\r\nX: y", "https://evil.example/" + strings.Repeat("x", 2049-21),
				"https://good.example@evil.example/c", "https://evil.example",
				"https://evil.example/a/.%2E/c.json", "https://evil.example/c.json#", "javascript:alert('evil')"} {
				parameters := client.Request()
				parameters.Set("client_id", id)
				Expect(client.AskFor(ctx, parameters)).To(BeASafePage(400, "invalid_client"), id)
			}
			Expect(fetches()).To(BeZero())
		})

	It("tells the developer of a client what a client_id must be", Label("C40", "C1"), func(ctx SpecContext) {
		parameters := client.Request()
		parameters.Set("client_id", "my-client")
		page := client.AskFor(ctx, parameters)
		Expect(page).To(BeASafePage(400, "invalid_client"))
		Expect(page.Text).To(ContainSubstring("the client_id must be the https URL of a metadata document"))
	})

	DescribeTable("shows a page for a redirect_uri", func(ctx SpecContext, targets ...string) {
		for _, target := range targets {
			parameters := client.Request()
			parameters.Set("redirect_uri", target)
			parameters.Set("response_type", "evil") // other errors are not sent to an untrusted address
			Expect(client.AskFor(ctx, parameters)).To(BeASafePage(400, "invalid_request"), target)
		}
		Expect(fetches()).To(BeNumerically("<=", 2)) // the document, and once more for what it lacks
	},
		Entry("that is missing", Label("A10"), ""),
		Entry("that is malformed", Label("A11"), "/callback", "http://127.0.0.1:4321/callback#",
			"https://client.example@evil.example/callback", `https://client.example\@evil.example/callback`,
			"https://client.example/callback\r\nevil: 1", "https://client.example/cällback"),
		Entry("that the document does not list", Label("A12", "C46"), "https://evil.example/callback",
			"https://client.example.evil.example/callback", "https://client.example/callback?evil=1"),
		Entry("elsewhere on loopback", Label("A13"), "http://localhost:4321/callback", "http://127.0.0.1:4321/evil",
			"http://127.0.0.1:65536/callback"),
		Entry("of a private scheme or a script", Label("A14"), "cursor://evil/callback", "javascript:alert('evil')",
			"file:///etc/evil"),
	)

	DescribeTable("shows a page when the client's document excludes",
		Label("A18"), func(ctx SpecContext, status int, code, member string) {
			client = world.ClientAt(client.Redirect, ","+member)
			Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(status, code))
		},
		Entry("codes", Label("C32"), 400, "invalid_client", `"response_types":["token"]`),
		Entry("pushed requests", Label("C34", "C44"), 400, "unauthorized_client",
			`"require_pushed_authorization_requests":true`),
	)
})

// ClientAt publishes the document of a new client with one redirect URI and additional JSON
// members.
func (w *World) ClientAt(redirect, members string) *Client {
	GinkgoHelper()
	client := w.NewClient()
	client.Redirect = redirect
	w.Clients.Publish(client.path(),
		`{"client_id":"`+client.ID+`","client_name":"Spec Client","redirect_uris":["`+redirect+`"]`+members+`}`)
	return client
}

// expectError checks an error redirect exactly: each parameter once, no other parameters, and the
// published URI unchanged.
func (c *Client) expectError(answer Response, code, state string) {
	GinkgoHelper()
	Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
	Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
	Expect(answer.Header).NotTo(HaveKey("Set-Cookie"))
	separator := "?"
	if strings.Contains(c.Redirect, "?") {
		separator = "&"
	}
	appended, found := strings.CutPrefix(answer.Header.Get("Location"), c.Redirect+separator)
	Expect(found).To(BeTrue(), answer.Header.Get("Location"))
	told := must(url.ParseQuery(appended))
	Expect(told["error_description"]).To(ConsistOf(MatchRegexp(`^[\x20\x21\x23-\x5b\x5d-\x7e]+$`)))
	delete(told, "error_description")
	wanted := url.Values{"error": {code}, "iss": {c.World.Issuer}}
	if state != "" {
		wanted.Set("state", state)
	}
	Expect(told).To(Equal(wanted))
}

var _ = Describe("Returning errors to the client", Label("RFC 6749", "N2", "A39"), Ordered, ContinueOnFailure, func() {
	const challenge43 = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	var world *World
	BeforeAll(func() { world = NewWorld() })

	DescribeTableSubtree("by a redirect", func(redirect string, button bool) {
		var client *Client
		BeforeEach(func() {
			world.Clock.Advance(time.Minute) // refills the fetch budget
			client = world.ClientAt(redirect, "")
			client.State = "st a/te+=&%\"#"
		})

		// Of several values, each is sent in a request of its own; a missing one is nil.
		DescribeTable("reports", func(ctx SpecContext, code, name string, spoiled ...[]string) {
			for _, values := range spoiled {
				parameters := client.Request()
				if parameters[name] = values; values == nil {
					delete(parameters, name)
				}
				for i := range values {
					values[i] = strings.ReplaceAll(values[i], "ISSUER", world.Issuer)
				}
				answer := client.AskFor(ctx, parameters)
				if button {
					Expect(answer).To(BeAPage(400, code))
					answer = ReadPage(answer).Submit(ctx, url.Values{"decision": {"return"}})
				}
				client.expectError(answer, code, client.State)
			}
		},
			Entry("a repeated code_challenge", Label("A15"), "invalid_request", "code_challenge",
				[]string{challenge43, challenge43}),
			Entry("a repeated scope", Label("A15"), "invalid_request", "scope", []string{"mcp", "mcp"}),
			Entry("a missing response_type", Label("A4", "A16"), "invalid_request", "response_type", nil, []string{""}),
			Entry("another response_type", Label("A16"), "unsupported_response_type", "response_type",
				[]string{"token"}, []string{"CODE"}, []string{"code code"}, []string{"none"}),
			Entry("another response_mode", Label("A17"), "invalid_request", "response_mode",
				[]string{"fragment"}, []string{"Query"}),
			Entry("a missing challenge", Label("A4", "A19"), "invalid_request", "code_challenge", nil, []string{""}),
			Entry("another method", Label("A20"), "invalid_request", "code_challenge_method",
				nil, []string{"plain"}, []string{"s256"}),
			Entry("another challenge than of 32 bytes", Label("A21"), "invalid_request", "code_challenge",
				[]string{challenge43[1:]}, []string{challenge43 + "A"}, []string{challenge43 + "="},
				[]string{strings.Replace(challenge43, "-", "+", 1)}, []string{challenge43[:42] + "N"},
				[]string{challenge43[:42] + "\n"}),
			Entry("a malformed scope", Label("A23"), "invalid_scope", "scope", []string{"mcp\tmcp"}, []string{"mcp ä"},
				[]string{"mcp " + strings.Repeat("x", 1021)}),
			Entry("no known scope", Label("A25"), "invalid_scope", "scope", []string{"openid unknown"},
				[]string{"MCP"}),
			Entry("a resource that is no absolute URI", Label("A29"), "invalid_target", "resource",
				[]string{"mcp"}, []string{"/mcp"}, []string{"ISSUER/mcp#"}),
			Entry("another resource", Label("A30", "A31"), "invalid_target", "resource", []string{"ISSUER"},
				[]string{"https://other.example/mcp"}, []string{"ISSUER/mcp", "https://other.example/mcp"}),
		)

		It("reports that the person denied access", Label("B5"), func(ctx SpecContext) {
			client.expectError(client.Consent(ctx).Deny(ctx), "access_denied", client.State)
		})
	},
		Entry("at once, to a loopback URI", "http://127.0.0.1:4321/callback?keep=a%2fb&c", false),
		Entry("behind a button, to a web site", Label("B17"), "https://client.example/callback", true),
	)
})
