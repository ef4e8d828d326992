package features_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

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

	DescribeTable("warns when the redirect host differs from the host of the client's document:", Label("A36"),
		func(ctx SpecContext, redirect func() string, warned bool) {
			client.Redirect = redirect()
			id, document := client.ID,
				map[string]any{"client_id": client.ID, "client_name": "Spec Client",
					"redirect_uris": []string{client.Redirect}}
			text, err := json.Marshal(document)
			Expect(err).NotTo(HaveOccurred())
			world.Clients.Publish(strings.TrimPrefix(id, world.Clients.URL("")), string(text))
			Expect(strings.Contains(client.Consent(ctx).Text, "Two different addresses.")).To(Equal(warned))
		},
		Entry("another", func() string { return "https://elsewhere.example/callback" }, true),
		Entry("the same", func() string { return world.Clients.URL("/callback") }, false),
	)

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
				To(And(HaveLen(3), HaveKeyWithValue("state", []string{client.State}),
					HaveKeyWithValue("iss", []string{world.Issuer})))
		})

	It("reports a denial to the client", Label("B5"), func(ctx SpecContext) {
		answer := client.Consent(ctx).Deny(ctx)
		Expect(answer.StatusCode).To(Equal(http.StatusSeeOther))
		Expect(answer.Target().Query()).To(And(
			HaveKeyWithValue("error", []string{"access_denied"}), HaveKeyWithValue("state", []string{client.State}),
			HaveKeyWithValue("iss", []string{world.Issuer}), Not(HaveKey("code"))))
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

	It("refuses a form that is older than ten minutes", Label("B4"), func(ctx SpecContext) {
		page := client.Consent(ctx)
		world.Clock.Advance(10 * time.Minute)
		Expect(page.Approve(ctx, world.Token)).To(BeAPage(http.StatusBadRequest, "This form is too old"))
	})

	DescribeTable("refuses a form", func(ctx SpecContext, status int, spoil func(*http.Request)) {
		page := client.Consent(ctx)
		form := url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"approve"},
			"bearer_token": {world.Token}}
		Expect(Post(ctx, page.Action, form, spoil)).To(BeAPage(status, "invalid_request"))
	},
		Entry("that another site sent", Label("B3"), http.StatusForbidden, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}),
		Entry("that another origin sent", Label("B3"), http.StatusForbidden, func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
		}),
		Entry("of unknown origin", Label("B3"), http.StatusForbidden, func(r *http.Request) {
			r.Header.Set("Origin", "null")
		}),
		Entry("of another media type", Label("B1"), http.StatusUnsupportedMediaType, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
		}),
	)

	DescribeTable("refuses a forged or broken form", func(ctx SpecContext, spoil func(url.Values)) {
		form := url.Values{"ticket": {client.Consent(ctx).Hidden.Get("ticket")}, "decision": {"approve"},
			"bearer_token": {world.Token}}
		spoil(form)
		Expect(Post(ctx, world.Issuer+"/oauth/authorize", form)).To(BeAPage(http.StatusBadRequest, "invalid_request"))
	},
		Entry("without a ticket", Label("B4"), drop("ticket")),
		Entry("with a forged ticket", Label("B4"), set("ticket", strings.Repeat("A", 200))),
		Entry("without a decision", Label("B5"), drop("decision")),
		Entry("with two tickets", Label("B2"), repeat("ticket")),
	)

	DescribeTable("shows a page and never redirects",
		func(ctx SpecContext, status int, code string, spoil func(url.Values)) {
			parameters := client.Request()
			spoil(parameters)
			Expect(client.AskFor(ctx, parameters)).To(BeAPage(status, code))
		},
		Entry("when client_id is missing", Label("A7"), 400, "invalid_request", drop("client_id")),
		Entry("when client_id is not an https URL", Label("A7", "C1"), 400, "invalid_client",
			set("client_id", "http://client.example/x.json")),
		Entry("when client_id is repeated", Label("A5"), 400, "invalid_request", repeat("client_id")),
		Entry("when redirect_uri is repeated", Label("A5"), 400, "invalid_request", repeat("redirect_uri")),
		Entry("when state is repeated", Label("A5"), 400, "invalid_request", repeat("state")),
		Entry("when redirect_uri is not listed", Label("A12", "C46"), 400, "invalid_request",
			set("redirect_uri", "https://client.example/other")),
		Entry("when redirect_uri has a fragment", Label("A11"), 400, "invalid_request",
			set("redirect_uri", "https://client.example/callback#")),
		Entry("when redirect_uri is missing and several are listed", Label("A10"), 400, "invalid_request",
			drop("redirect_uri")),
		Entry("when the request is huge", Label("A2"), 414, "invalid_request",
			set("state", strings.Repeat("x", 25000))),
	)

	It("shows a page when the client's document cannot be fetched", Label("A9", "C41", "C42"), func(ctx SpecContext) {
		parameters := client.Request()
		parameters.Set("client_id", world.Clients.URL("/missing.json"))
		Expect(client.AskFor(ctx, parameters)).To(BeAPage(http.StatusBadGateway, "invalid_client"))
	})

	It("shows a page when the client's document is not valid", Label("C23", "C43"), func(ctx SpecContext) {
		parameters := client.Request()
		parameters.Set("client_id",
			world.Clients.Publish("/liar.json",
				`{"client_id":"https://other.example/c","client_name":"L",`+
					`"redirect_uris":["http://127.0.0.1/callback"]}`))
		Expect(client.AskFor(ctx, parameters)).To(BeAPage(http.StatusBadRequest, "invalid_client"))
	})

	DescribeTable("reports to a client on loopback", func(ctx SpecContext, code string, spoil func(url.Values)) {
		parameters := client.Request()
		spoil(parameters)
		answer := client.AskFor(ctx, parameters)
		Expect(answer.StatusCode).To(Equal(http.StatusSeeOther))
		Expect(answer.Header.Get("Location")).To(HavePrefix(client.Redirect + "?error="))
		Expect(answer.Target().Query()).
			To(And(HaveKeyWithValue("error", []string{code}), HaveKeyWithValue("iss", []string{world.Issuer}),
				Not(HaveKey("code"))))
	},
		Entry("that response_type is missing", Label("A16"), "invalid_request", drop("response_type")),
		Entry("that response_type=token is not supported", Label("A16"), "unsupported_response_type",
			set("response_type", "token")),
		Entry("that response_mode=fragment is not supported", Label("A17"), "invalid_request",
			set("response_mode", "fragment")),
		Entry("that PKCE is mandatory", Label("A19"), "invalid_request", drop("code_challenge")),
		Entry("that the challenge method is mandatory", Label("A20"), "invalid_request", drop("code_challenge_method")),
		Entry("that plain PKCE is not supported", Label("A20"), "invalid_request",
			set("code_challenge_method", "plain")),
		Entry("that the challenge is malformed", Label("A21"), "invalid_request", set("code_challenge", "short")),
		Entry("that the scope is malformed", Label("A23"), "invalid_scope", set("scope", `mcp "x"`)),
		Entry("that the scope is unknown", Label("A25"), "invalid_scope", set("scope", "admin")),
		Entry("that the resource is on another site", Label("A29", "A30"), "invalid_target",
			set("resource", "https://other.example/mcp")),
		Entry("that a parameter is repeated", Label("A5", "A15"), "invalid_request", repeat("scope")),
	)

	It("puts an error for another site behind a button", Label("B17"), func(ctx SpecContext) {
		parameters := client.Request()
		parameters.Set("redirect_uri", "https://client.example/callback")
		parameters.Set("response_type", "token")
		page := ReadPage(client.AskFor(ctx, parameters))
		Expect(page.Response).To(BeAPage(http.StatusBadRequest, "unsupported_response_type"))
		answer := page.Submit(ctx, url.Values{"decision": {"return"}})
		Expect(answer.StatusCode).To(Equal(http.StatusSeeOther))
		Expect(answer.Header.Get("Location")).
			To(HavePrefix("https://client.example/callback?error=unsupported_response_type"))
		Expect(answer.Target().Query().Get("state")).To(Equal(client.State))
	})

	DescribeTable("accepts", func(ctx SpecContext, spoil func(url.Values), scope string) {
		Expect(client.Connect(ctx, spoil).Scope).To(Equal(scope))
	},
		Entry("a request without scope", Label("A24"), drop("scope"), "mcp"),
		Entry("a request without resource", Label("A28"), drop("resource"), "mcp offline_access"),
		Entry("unknown parameters", Label("A6"), set("prompt", "consent"), "mcp offline_access"),
		Entry("an unknown scope beside a known one", Label("A25"), set("scope", "mcp profile"), "mcp"),
		Entry("only offline_access", Label("A25"), set("scope", "offline_access"), "mcp offline_access"),
		Entry("a request without state", Label("A22"), drop("state"), "mcp offline_access"),
	)

	DescribeTable("answers a wrong method", Label("A1"), func(ctx SpecContext, method string) {
		answer := request(ctx, method, world.Issuer+"/oauth/authorize", nil)
		Expect(answer.StatusCode).To(Equal(http.StatusMethodNotAllowed))
		Expect(answer.Header.Get("Allow")).To(Equal("GET, POST"))
		Expect(answer.Header).NotTo(HaveKey("Access-Control-Allow-Origin"))
	}, Entry(nil, "PUT"), Entry(nil, "DELETE"), Entry(nil, "OPTIONS"), Entry(nil, "PATCH"), Entry(nil, "PROPFIND"),
		Entry(nil, "HEAD"), Entry("that does not exist", "FOO"))

	It("fetches a client's document once for many requests", Label("C36"), func(ctx SpecContext) {
		before := world.Clients.Fetches()
		for range 3 {
			client.Consent(ctx)
		}
		Expect(world.Clients.Fetches() - before).To(BeEquivalentTo(1))
	})
})
