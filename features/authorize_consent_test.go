package features_test

import (
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// set, drop and repeat change one parameter of a request.
func set(name, value string) func(url.Values) { return func(v url.Values) { v.Set(name, value) } }
func drop(name string) func(url.Values)       { return func(v url.Values) { v.Del(name) } }
func repeat(name string) func(url.Values) {
	return func(v url.Values) { v[name] = []string{v.Get(name), v.Get(name)} }
}

// BeAPage matches an HTML response for a person without a redirect.
func BeAPage(status int, code string) types.GomegaMatcher {
	return And(
		HaveField("StatusCode", status),
		HaveField("Header", HaveKeyWithValue("Content-Type", []string{"text/html; charset=utf-8"})),
		HaveField("Header", Not(HaveKey("Location"))),
		HaveField("Text", ContainSubstring(code)),
	)
}

var _ = Describe("Asking a person for consent", Label("OAuth 2.1", "CIMD", "smoke", "stores"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
	})

	It("shows the client, the scopes and the redirect host",
		Label("A34", "A35", "A36", "A37", "A44"), func(ctx SpecContext) {
			page := client.Consent(ctx)
			Expect(page.Text).To(ContainSubstring("Spec Client"))
			Expect(page.Text).To(ContainSubstring(strings.TrimPrefix(world.Clients.URL(""), "https://")))
			Expect(page.Text).To(ContainSubstring("127.0.0.1:4321"))
			Expect(page.Text).To(ContainSubstring(world.MCP()))
			Expect(page.Text).To(ContainSubstring("Use this site&#39;s tools in your name"))
			Expect(page.Text).To(ContainSubstring("The app’s access goes to a program on this computer."))
			Expect(page.Text).
				To(ContainSubstring("The connection ends if unused for 30 days, and after 180 days in any case."))
			Expect(page.Action).To(Equal(world.Issuer + "/oauth/authorize"))
			Expect(page.Hidden).To(And(HaveLen(3), HaveKey("ticket"), HaveKey("choice"),
				HaveKeyWithValue("allow", []string{"offline_access"})))
			Expect(page.Header).NotTo(HaveKey("Set-Cookie"))
		})

	It("warns when the redirect host differs from the host of the client's document", Label("A36"),
		func(ctx SpecContext) {
			for redirect, warned := range map[string]bool{"https://elsewhere.example/callback": true,
				world.Clients.URL("/callback"): false} {
				page := world.ClientAt(redirect, "").Consent(ctx)
				Expect(strings.Contains(page.Text, "Two different addresses.")).To(Equal(warned))
			}
		})

	It("cannot be framed, cached or scripted, and lets the form redirect to any host",
		Label("A38", "A41"), func(ctx SpecContext) {
			header := client.Consent(ctx).Header
			Expect(header.Get("Content-Security-Policy")).
				To(And(HavePrefix("default-src 'none'; style-src 'nonce-"),
					HaveSuffix("; base-uri 'none'; frame-ancestors 'none'")))
			Expect(header.Get("Content-Security-Policy")).NotTo(ContainSubstring("form-action"))
			Expect(header).NotTo(HaveKey("Cross-Origin-Opener-Policy"))
			Expect(header.Get("Cache-Control")).To(Equal("no-store"))
			Expect(header.Get("X-Frame-Options")).To(Equal("DENY"))
			Expect(header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
			Expect(header.Get("Referrer-Policy")).To(Equal("same-origin"))
		})

	It("sends the code to the client when the site accepts the pasted token",
		Label("B11", "B12", "RFC 9207"), func(ctx SpecContext) {
			answer := client.Consent(ctx).Approve(ctx, "  Bearer "+world.Token+"\n")
			Expect(answer.StatusCode).To(Equal(http.StatusSeeOther))
			Expect(answer.Text).To(BeEmpty())
			Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
			Expect(answer.Header.Get("Location")).To(HavePrefix(client.Redirect + "?code=ppc_"))
			Expect(answer.Target().Query()).
				To(And(HaveLen(3), HaveEach(HaveLen(1)), HaveKeyWithValue("state", []string{client.State}),
					HaveKeyWithValue("iss", []string{world.Issuer})))
			Expect(answer.Header.Get("Referrer-Policy")).To(Equal("same-origin"))
			Expect(answer.Header).NotTo(HaveKey("Set-Cookie"))
		})

	DescribeTable("shows the same form again", func(ctx SpecContext, pasted string, status int, sentence string) {
		page := ReadPage(client.Consent(ctx).Approve(ctx, pasted))
		Expect(page.StatusCode).To(Equal(status))
		Expect(page.Text).To(ContainSubstring(sentence))
		Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
	},
		Entry("when the site rejects the token", Label("B8"), "demo_wrong", http.StatusForbidden,
			"does not know that token"),
		Entry("when nothing was pasted", Label("B7"), "  ", http.StatusBadRequest, "Paste your token first"),
		Entry("when the pasted text is too long", Label("B7"), strings.Repeat("x", 5000), http.StatusForbidden,
			"This is too long for a token."),
		Entry("when the pasted text has several lines", Label("B7"), "demo\nwrong", http.StatusForbidden,
			"It contains a line break or another control character."),
		Entry("when the pasted text has quotes inside", Label("B7"), `{"token": "demo_wrong"}`, http.StatusForbidden,
			"It contains quotation marks"),
	)

	It("refuses other methods", Label("A1"), func(ctx SpecContext) {
		for _, method := range []string{"PUT", "OPTIONS", "HEAD", "FOO"} {
			answer := request(ctx, method, world.Issuer+"/oauth/authorize", nil)
			Expect(answer.StatusCode).To(Equal(http.StatusMethodNotAllowed), method)
			Expect(answer.Header.Get("Allow")).To(Equal("GET, POST"))
			Expect(answer.Header).NotTo(HaveKey("Access-Control-Allow-Origin"))
		}
	})
})
