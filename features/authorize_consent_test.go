package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
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
	world := EachWorld()
	client := world.EachClient()

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
			Expect(header.Get("Content-Security-Policy")).To(And(HavePrefix("default-src 'none'; style-src 'nonce-"),
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

// articleScopes has four scopes; to change articles implies to comment on them. Every token may
// grant all of them.
func articleScopes(config *service.Config) {
	config.DefaultScopes = []string{"read", "comment", "change", "delete"}
	config.Scopes = []oauth.Scope{
		{Name: "read", Description: "Read articles"},
		{Name: "comment", Description: "Comment on articles"},
		{Name: "change", Description: "Change articles", Implies: []string{"comment"}},
		{Name: "delete", Description: "Delete articles"},
	}
}

const allArticleScopes = "read comment change delete offline_access"

// Untick takes the mark out of a checkbox.
func (p Page) Untick(values ...string) Page {
	GinkgoHelper()
	for _, value := range values {
		Expect(p.Hidden["allow"]).To(ContainElement(value))
	}
	p.Hidden["allow"] = slices.DeleteFunc(slices.Clone(p.Hidden["allow"]), func(allowed string) bool {
		return slices.Contains(values, allowed)
	})
	return p
}

// exchangeFrom exchanges the code in the redirect of an approval.
func (c *Client) exchangeFrom(ctx context.Context, approved Response) Tokens {
	GinkgoHelper()
	Expect(approved.StatusCode).To(Equal(http.StatusSeeOther), approved.Text)
	answer := c.Token(ctx, c.Exchange(approved.Target().Query().Get("code")))
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	return answer.Tokens()
}

var _ = Describe("Choosing what an app may do", func() {
	var world *World
	var client *Client
	over := func(adjust ...func(*service.Config)) {
		world = NewWorld(append([]func(*service.Config){articleScopes}, adjust...)...)
		client = world.NewClient()
	}
	BeforeEach(func() { over() })
	all := set("scope", allArticleScopes)
	onlyReading := func(config *service.Config) { config.DefaultScopes = []string{"read"} }

	It("has a checked checkbox for each scope but the first, and for staying connected",
		Label("A45"), func(ctx SpecContext) {
			page := client.Consent(ctx, all)
			Expect(page.Hidden["allow"]).To(Equal([]string{"comment", "change", "delete", "offline_access"}))
			Expect(page.Text).To(And(ContainSubstring("checked disabled> <span>Read articles</span>"),
				ContainSubstring("Included in “Change articles” while that is ticked.")))
			tokens := client.exchangeFrom(ctx, page.Approve(ctx, world.Token))
			Expect(tokens.Scope).To(Equal("change comment delete offline_access read"))
		})

	DescribeTable("grants what the person has left", Label("A45", "B25"),
		func(ctx SpecContext, unticked []string, granted string) {
			tokens := client.exchangeFrom(ctx, client.Consent(ctx, all).Untick(unticked...).Approve(ctx, world.Token))
			Expect(tokens.Scope).To(Equal(granted))
			Expect(tokens.Refresh == "").To(Equal(slices.Contains(unticked, "offline_access")))
			if tokens.Refresh != "" {
				Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens().Scope).To(Equal(granted))
			}
		},
		Entry("without one scope", []string{"delete"}, "change comment offline_access read"),
		Entry("with a scope that a checked one implies", []string{"comment"},
			"change comment delete offline_access read"),
		Entry("without a scope and what it implies", []string{"comment", "change"}, "delete offline_access read"),
		Entry("without staying connected", []string{"offline_access"}, "change comment delete read"),
		Entry("with nothing but the first", []string{"comment", "change", "delete", "offline_access"}, "read"),
	)

	It("has no checkbox for the only scope", Label("A45"), func(ctx SpecContext) {
		Expect(client.Consent(ctx, set("scope", "delete")).Text).NotTo(ContainSubstring(`type="checkbox"`))
	})

	It("keeps what the person has unticked after a wrong token", Label("A45", "B8"), func(ctx SpecContext) {
		again := ReadPage(client.Consent(ctx, all).Untick("delete", "offline_access").Approve(ctx, "demo_wrong"))
		Expect(again.StatusCode).To(Equal(http.StatusForbidden))
		Expect(again.Hidden["allow"]).To(Equal([]string{"comment", "change"}))
		tokens := client.exchangeFrom(ctx, again.Approve(ctx, world.Token))
		Expect(tokens.Scope).To(Equal("change comment read"))
	})

	It("replaces the code of an earlier approval of the form that allowed more", Label("B13", "B25"),
		func(ctx SpecContext) {
			page := client.Consent(ctx, all)
			wide := page.Approve(ctx, world.Token).Target().Query().Get("code")
			tokens := client.exchangeFrom(ctx, page.Untick("change", "delete", "comment").Approve(ctx, world.Token))
			Expect(tokens.Scope).To(Equal("offline_access read"))
			Expect(client.Token(ctx, client.Exchange(wide))).To(BeRefusedAs(400, "invalid_grant"))
		})

	DescribeTable("refuses a form that would widen the request, and stores nothing", Label("B25"),
		func(ctx SpecContext, spoil func(url.Values)) {
			page := client.Consent(ctx, set("scope", "read comment"))
			spoil(page.Hidden)
			Expect(page.Approve(ctx, world.Token)).To(BeAPage(http.StatusBadRequest, "invalid_request"))
			Expect(world.Grants(ctx)).To(BeEmpty())
		},
		Entry("with a scope that was not requested", set("allow", "delete")),
		Entry("with offline_access", set("allow", "offline_access")),
		Entry("with an unknown scope", set("allow", "admin")),
		Entry("with a time that was not offered", set("lifetime", "24h")),
		Entry("with a time that is none", set("lifetime", "soon")),
	)

	It("offers the times of grant-choices, and ends the grant after the chosen one",
		Label("A46", "B25", "D28"), func(ctx SpecContext) {
			over(func(config *service.Config) {
				config.GrantChoices = []time.Duration{time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}
			})
			page := client.Consent(ctx)
			Expect(page.Text).To(MatchRegexp(`name="lifetime"><option value="720h0m0s">30 days</option>` +
				`<option value="168h0m0s">7 days</option><option value="1h0m0s">1 hour</option>`))
			page.Hidden.Set("lifetime", "168h0m0s")
			again := ReadPage(page.Approve(ctx, "demo_wrong"))
			Expect(again.Text).To(ContainSubstring(`<option value="168h0m0s" selected>`))
			tokens := client.exchangeFrom(ctx, page.Approve(ctx, world.Token))
			world.Clock.Advance(7*24*time.Hour - time.Minute)
			renewed := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			Expect(renewed.ExpiresIn).To(BeNumerically("<=", 60))
			world.Clock.Advance(time.Minute)
			Expect(client.Token(ctx, client.Refresh(renewed.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
			Expect(world.Call(ctx, renewed.Access).StatusCode).To(Equal(http.StatusUnauthorized))
		})

	It("lets an app go on that repeats at its refresh a scope that the person has unticked", Label("D24"),
		func(ctx SpecContext) {
			page := client.Consent(ctx, set("scope", allArticleScopes)).Untick("delete")
			form := client.Refresh(client.exchangeFrom(ctx, page.Approve(ctx, world.Token)).Refresh)
			form.Set("scope", allArticleScopes)
			renewed := client.Token(ctx, form).Tokens()
			Expect(renewed.Scope).To(Equal("change comment offline_access read"))
			form = client.Refresh(renewed.Refresh)
			form.Set("scope", "delete offline_access")
			Expect(client.Token(ctx, form)).To(BeRefusedAs(400, "invalid_scope"))
		})

	It("ends a grant after the longest of grant-choices by default", Label("A46"), func(ctx SpecContext) {
		over(func(config *service.Config) { config.GrantChoices = []time.Duration{time.Hour, 2 * time.Hour} })
		tokens := client.Connect(ctx)
		world.Clock.Advance(2*time.Hour - time.Minute)
		tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		world.Clock.Advance(time.Minute)
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
	})

	It("names the default scopes where clients look for what to request, and all of them elsewhere",
		Label("F17", "G3"), func(ctx SpecContext) {
			over(onlyReading)
			scopesIn := func(path string) (found []string) {
				var document struct {
					Scopes []string `json:"scopes_supported"`
				}
				Expect(json.Unmarshal([]byte(Get(ctx, world.Issuer+path).Text), &document)).To(Succeed())
				return document.Scopes
			}
			Expect(scopesIn("/.well-known/oauth-protected-resource/mcp")).To(Equal([]string{"read"}))
			Expect(scopesIn("/.well-known/oauth-authorization-server")).
				To(ConsistOf("read", "comment", "change", "delete", "offline_access"))
			Expect(world.Call(ctx, "").Header.Get("WWW-Authenticate")).To(ContainSubstring(`scope="read"`))
		})

	DescribeTable("grants the default scopes to a client that requests scopes of OpenID only, and shows them",
		Label("A25"), func(ctx SpecContext, requested, granted string) {
			over(onlyReading)
			page := client.Consent(ctx, set("scope", requested))
			Expect(page.Text).To(ContainSubstring("<li>Read articles</li>"))
			Expect(client.exchangeFrom(ctx, page.Approve(ctx, world.Token)).Scope).To(Equal(granted))
		},
		Entry(nil, "openid", "read"), Entry(nil, "openid profile email", "read"),
		Entry(nil, "openid email offline_access", "offline_access read"),
	)
})

var _ = Describe("Refresh tokens for clients that forget to request them", Label("A47"), func() {
	var world *World
	registered := func(config *service.Config) { config.RefreshTokens = oauth.RefreshRegistered }
	forgetful := set("scope", "mcp")

	It("gives them to clients that declare the grant type, unless the person unticks it", func(ctx SpecContext) {
		world = NewWorld(registered)
		client := world.NewClient()
		page := client.Consent(ctx, forgetful)
		Expect(page.Hidden["allow"]).To(Equal([]string{"offline_access"}))
		tokens := client.exchangeFrom(ctx, page.Approve(ctx, world.Token))
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		page = client.Consent(ctx, forgetful).Untick("offline_access")
		Expect(client.exchangeFrom(ctx, page.Approve(ctx, world.Token)).Refresh).To(BeEmpty())
	})

	It("gives none to clients that do not declare it", func(ctx SpecContext) {
		world = NewWorld(registered)
		for _, grants := range []any{nil, []string{"authorization_code"}} {
			client := world.ClientWith("grant_types", grants)
			Expect(client.Connect(ctx, forgetful).Refresh).To(BeEmpty())
		}
	})

	It("gives none to clients that do not request offline_access otherwise, and the trace names the setting",
		func(ctx SpecContext) {
			world = NewWorld()
			client := world.NewClient()
			tokens := client.Connect(ctx, forgetful)
			Expect(tokens.Refresh).To(BeEmpty())
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			world.Clock.Advance(time.Hour)
			Expect(world.Call(ctx, tokens.Access)).To(BeChallenged(world, "invalid_token"))
			Eventually(func() string { return Run(ctx, append([]string{"trace"}, world.Kept()...)...).Out }).
				WithContext(ctx).WithTimeout(patience).Should(ContainSubstring("refresh-tokens: registered"))
		})
})
