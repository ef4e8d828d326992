package features_test

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// ClientAt publishes a document with one redirect URI for a new client, and with members as JSON that follow those of every document.
func (w *World) ClientAt(redirect, members string) *Client {
	GinkgoHelper()
	client := w.NewClient()
	client.Redirect = redirect
	w.Clients.Publish(client.path(),
		`{"client_id":"`+client.ID+`","client_name":"Spec Client","redirect_uris":["`+redirect+`"]`+members+`}`)
	return client
}

// expectError checks an error redirect to the letter: everything once, nothing more, the published URI untouched.
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
	told, err := url.ParseQuery(appended)
	Expect(err).NotTo(HaveOccurred())
	Expect(told["error_description"]).To(ConsistOf(MatchRegexp(`^[\x20\x21\x23-\x5b\x5d-\x7e]+$`)))
	delete(told, "error_description")
	wanted := url.Values{"error": {code}, "iss": {c.World.Issuer}}
	if state != "" {
		wanted.Set("state", state)
	}
	Expect(told).To(Equal(wanted))
}

var _ = Describe("Answering a bad request of a client", Label("RFC 6749", "N2", "A39"), Ordered, ContinueOnFailure, func() {
	const challenge43 = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	var world *World
	BeforeAll(func() { world = NewWorld() })

	DescribeTableSubtree("by a redirect", func(redirect string, button bool) {
		var client *Client
		BeforeEach(func() {
			world.Clock.Advance(time.Minute) // so that the budget for fetching is full again
			client = world.ClientAt(redirect, "")
			client.State = "st a/te+=&%\"#"
		})

		DescribeTable("says", func(ctx SpecContext, code string, spoil func(url.Values)) {
			parameters := client.Request()
			spoil(parameters)
			answer := client.AskFor(ctx, parameters)
			if button {
				Expect(answer).To(BeAPage(400, code))
				answer = ReadPage(answer).Submit(ctx, url.Values{"decision": {"return"}})
			}
			state := client.State
			if parameters.Get("state") != state {
				state = ""
			}
			client.expectError(answer, code, state)
		},
			Entry("that response_type is repeated", Label("A15"), "invalid_request", repeat("response_type")),
			Entry("that code_challenge is repeated", Label("A15"), "invalid_request", repeat("code_challenge")),
			Entry("that code_challenge_method is repeated", Label("A15"), "invalid_request", repeat("code_challenge_method")),
			Entry("that scope is repeated", Label("A15"), "invalid_request", repeat("scope")),
			Entry("that response_mode is repeated", Label("A15"), "invalid_request", func(v url.Values) { v["response_mode"] = []string{"query", "query"} }),
			Entry("that response_type is missing", Label("A16"), "invalid_request", drop("response_type")),
			Entry("that response_type is empty", Label("A4", "A16"), "invalid_request", set("response_type", "")),
			Entry("that no token comes from here", Label("A16"), "unsupported_response_type", set("response_type", "token")),
			Entry("that CODE is not code", Label("A16"), "unsupported_response_type", set("response_type", "CODE")),
			Entry("that one code is enough", Label("A16"), "unsupported_response_type", set("response_type", "code code")),
			Entry("that none is nothing", Label("A16"), "unsupported_response_type", set("response_type", "none")),
			Entry("that answers are in no fragment", Label("A17"), "invalid_request", set("response_mode", "fragment")),
			Entry("that answers are in no form", Label("A17"), "invalid_request", set("response_mode", "form_post")),
			Entry("that Query is not query", Label("A17"), "invalid_request", set("response_mode", "Query")),
			Entry("that PKCE is missing", Label("A19"), "invalid_request", drop("code_challenge")),
			Entry("that the challenge is empty", Label("A4", "A19"), "invalid_request", set("code_challenge", "")),
			Entry("that the method is missing", Label("A20"), "invalid_request", drop("code_challenge_method")),
			Entry("that plain proves nothing", Label("A20"), "invalid_request", set("code_challenge_method", "plain")),
			Entry("that s256 is not S256", Label("A20"), "invalid_request", set("code_challenge_method", "s256")),
			Entry("that 42 characters are too few", Label("A21"), "invalid_request", set("code_challenge", challenge43[1:])),
			Entry("that 44 characters are too many", Label("A21"), "invalid_request", set("code_challenge", challenge43+"A")),
			Entry("that there is no padding", Label("A21"), "invalid_request", set("code_challenge", challenge43+"=")),
			Entry("that the alphabet is that of URLs", Label("A21"), "invalid_request", set("code_challenge", strings.Replace(challenge43, "-", "+", 1))),
			Entry("that spare bits are zero", Label("A21"), "invalid_request", set("code_challenge", challenge43[:42]+"N")),
			Entry("that a line break is no character", Label("A21"), "invalid_request", set("code_challenge", challenge43[:42]+"\n")),
			Entry("that a tab separates no scopes", Label("A23"), "invalid_scope", set("scope", "mcp\tmcp")),
			Entry("that a scope has no quote", Label("A23"), "invalid_scope", set("scope", `"mcp"`)),
			Entry("that a scope has no backslash", Label("A23"), "invalid_scope", set("scope", `mcp\`)),
			Entry("that a scope is ASCII", Label("A23"), "invalid_scope", set("scope", "mcp ä")),
			Entry("that scopes have at most 1024 bytes", Label("A23"), "invalid_scope", set("scope", "mcp "+strings.Repeat("x", 1021))),
			Entry("that no requested scope is known", Label("A25"), "invalid_scope", set("scope", "openid profile email")),
			Entry("that MCP is not mcp", Label("A23", "A25"), "invalid_scope", set("scope", "MCP")),
			Entry("that a word is no resource", Label("A29"), "invalid_target", set("resource", "mcp")),
			Entry("that a path is no resource", Label("A29"), "invalid_target", set("resource", "/mcp")),
			Entry("that a resource has no fragment", Label("A29"), "invalid_target", func(v url.Values) { v.Set("resource", world.MCP()+"#") }),
			Entry("that the origin is another resource", Label("A30"), "invalid_target", func(v url.Values) { v.Set("resource", world.Issuer) }),
			Entry("that a query makes another resource", Label("A30"), "invalid_target", func(v url.Values) { v.Set("resource", world.MCP()+"?x") }),
			Entry("that capitals in the path make another resource", Label("A30"), "invalid_target", func(v url.Values) { v.Set("resource", world.Issuer+"/MCP") }),
			Entry("that an escape makes another resource", Label("A30"), "invalid_target", func(v url.Values) { v.Set("resource", world.Issuer+"/%6dcp") }),
			Entry("that a dot segment makes another resource", Label("A30"), "invalid_target", func(v url.Values) { v.Set("resource", world.Issuer+"/x/../mcp") }),
			Entry("that two slashes make another resource", Label("A30"), "invalid_target", func(v url.Values) { v.Set("resource", world.MCP()+"//") }),
			Entry("that another site is another resource", Label("A30"), "invalid_target", set("resource", "https://other.example/mcp")),
			Entry("that one wrong resource of two is too much", Label("A31"), "invalid_target", func(v url.Values) {
				v["resource"] = []string{world.MCP(), "https://other.example/mcp"}
			}),
		)

		It("says that the person did not allow it", Label("B5"), func(ctx SpecContext) {
			client.expectError(client.Consent(ctx).Deny(ctx), "access_denied", client.State)
		})
	},
		Entry("at once to this computer", "http://127.0.0.1:4321/callback?keep=a%2fb&c", false),
		Entry("behind a button to a site", Label("B17", "M13"), "https://client.example/callback", true),
	)
})
