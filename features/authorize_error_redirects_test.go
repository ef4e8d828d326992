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
