package features_test

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

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

		DescribeTable("reports", func(ctx SpecContext, code string, spoil func(url.Values)) {
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
			Entry("that code_challenge_method is repeated", Label("A15"), "invalid_request",
				repeat("code_challenge_method")),
			Entry("that scope is repeated", Label("A15"), "invalid_request", repeat("scope")),
			Entry("that response_mode is repeated", Label("A15"), "invalid_request", func(v url.Values) {
				v["response_mode"] = []string{"query", "query"}
			}),
			Entry("that response_type is missing", Label("A16"), "invalid_request", drop("response_type")),
			Entry("that response_type is empty", Label("A4", "A16"), "invalid_request", set("response_type", "")),
			Entry("that response_type=token is not supported", Label("A16"), "unsupported_response_type",
				set("response_type", "token")),
			Entry("that response_type is case-sensitive", Label("A16"), "unsupported_response_type",
				set("response_type", "CODE")),
			Entry("that response_type holds code twice", Label("A16"), "unsupported_response_type",
				set("response_type", "code code")),
			Entry("that response_type=none is not supported", Label("A16"), "unsupported_response_type",
				set("response_type", "none")),
			Entry("that response_mode=fragment is not supported", Label("A17"), "invalid_request",
				set("response_mode", "fragment")),
			Entry("that response_mode=form_post is not supported", Label("A17"), "invalid_request",
				set("response_mode", "form_post")),
			Entry("that response_mode is case-sensitive", Label("A17"), "invalid_request",
				set("response_mode", "Query")),
			Entry("that PKCE is missing", Label("A19"), "invalid_request", drop("code_challenge")),
			Entry("that the challenge is empty", Label("A4", "A19"), "invalid_request", set("code_challenge", "")),
			Entry("that the method is missing", Label("A20"), "invalid_request", drop("code_challenge_method")),
			Entry("that the plain method is not supported", Label("A20"), "invalid_request",
				set("code_challenge_method", "plain")),
			Entry("that the method is case-sensitive", Label("A20"), "invalid_request",
				set("code_challenge_method", "s256")),
			Entry("that a challenge of 42 characters is too short", Label("A21"), "invalid_request",
				set("code_challenge", challenge43[1:])),
			Entry("that a challenge of 44 characters is too long", Label("A21"), "invalid_request",
				set("code_challenge", challenge43+"A")),
			Entry("that the challenge has padding", Label("A21"), "invalid_request",
				set("code_challenge", challenge43+"=")),
			Entry("that the challenge is not in the URL-safe alphabet", Label("A21"), "invalid_request",
				set("code_challenge", strings.Replace(challenge43, "-", "+", 1))),
			Entry("that the unused bits of the challenge are not zero", Label("A21"), "invalid_request",
				set("code_challenge", challenge43[:42]+"N")),
			Entry("that the challenge has a line break", Label("A21"), "invalid_request",
				set("code_challenge", challenge43[:42]+"\n")),
			Entry("that a tab separates scopes", Label("A23"), "invalid_scope", set("scope", "mcp\tmcp")),
			Entry("that a scope has a quote", Label("A23"), "invalid_scope", set("scope", `"mcp"`)),
			Entry("that a scope has a backslash", Label("A23"), "invalid_scope", set("scope", `mcp\`)),
			Entry("that a scope is not ASCII", Label("A23"), "invalid_scope", set("scope", "mcp ä")),
			Entry("that scope is longer than 1024 bytes", Label("A23"), "invalid_scope",
				set("scope", "mcp "+strings.Repeat("x", 1021))),
			Entry("that no requested scope is known", Label("A25"), "invalid_scope",
				set("scope", "openid unknown")),
			Entry("that scopes are case-sensitive", Label("A23", "A25"), "invalid_scope", set("scope", "MCP")),
			Entry("that a resource is a bare word", Label("A29"), "invalid_target", set("resource", "mcp")),
			Entry("that a resource is a bare path", Label("A29"), "invalid_target", set("resource", "/mcp")),
			Entry("that a resource has a fragment", Label("A29"), "invalid_target", func(v url.Values) {
				v.Set("resource", world.MCP()+"#")
			}),
			Entry("that the resource is the bare origin", Label("A30"), "invalid_target", func(v url.Values) {
				v.Set("resource", world.Issuer)
			}),
			Entry("that the path of the resource is in capitals", Label("A30"), "invalid_target", func(v url.Values) {
				v.Set("resource", world.Issuer+"/MCP")
			}),
			Entry("that the path of the resource has an escape", Label("A30"), "invalid_target", func(v url.Values) {
				v.Set("resource", world.Issuer+"/%6dcp")
			}),
			Entry("that the path of the resource has a dot segment", Label("A30"),
				"invalid_target", func(v url.Values) {
					v.Set("resource", world.Issuer+"/x/../mcp")
				}),
			Entry("that the path of the resource ends with two slashes", Label("A30"),
				"invalid_target", func(v url.Values) {
					v.Set("resource", world.MCP()+"//")
				}),
			Entry("that the resource is on another site", Label("A30"), "invalid_target",
				set("resource", "https://other.example/mcp")),
			Entry("that one of two resources is wrong", Label("A31"), "invalid_target", func(v url.Values) {
				v["resource"] = []string{world.MCP(), "https://other.example/mcp"}
			}),
		)

		It("reports that the person denied access", Label("B5"), func(ctx SpecContext) {
			client.expectError(client.Consent(ctx).Deny(ctx), "access_denied", client.State)
		})
	},
		Entry("at once, to a loopback URI", "http://127.0.0.1:4321/callback?keep=a%2fb&c", false),
		Entry("behind a button, to a web site", Label("B17"), "https://client.example/callback", true),
	)
})
