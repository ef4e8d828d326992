package features_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// path is the path of the client's document on its site.
func (c *Client) path() string { return strings.TrimPrefix(c.ID, c.World.Clients.URL("")) }

// ClientWith publishes a valid document with one member replaced; nil removes it.
func (w *World) ClientWith(member string, value any) *Client {
	GinkgoHelper()
	client := w.NewClient()
	members := params{"client_id": client.ID, "client_name": "Spec Client",
		"redirect_uris": []string{"http://127.0.0.1/callback"}}
	if members[member] = value; value == nil {
		delete(members, member)
	}
	w.Clients.Publish(client.path(), string(must(json.Marshal(members))))
	return client
}

// raw is JSON that json.Marshal passes on as it is.
func raw(text string) json.RawMessage { return json.RawMessage(text) }

// says responds with a status, a header and a body, in which ID stands for the client_id.
func (c *Client) says(status int, header http.Header, body string) {
	c.World.Clients.Serve(c.path(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", c.ID))
	})
}

var _ = Describe("Accepting client documents without a client_id", Label("CIMD", "C23"), func() {
	It("warns the person, also when the form is shown again", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.AllowDocumentsWithoutClientID = true })
		const warning = "description does not contain its own address"
		Expect(world.NewClient().Consent(ctx).Text).NotTo(ContainSubstring(warning))
		page := world.ClientWith("client_id", nil).Consent(ctx)
		Expect(page.Text).To(ContainSubstring(warning))
		Expect(page.Approve(ctx, "demo_wrong").Text).To(ContainSubstring(warning))
	})
})

var _ = Describe("Reconnecting ChatGPT, which adds a parameter to its client_id", Label("CIMD", "C23"), func() {
	const added = "?token_endpoint_auth_method=none"

	It("accepts the document of the client_id without it, and binds the tokens to the client_id as sent",
		Label("C10", "D22"), func(ctx SpecContext) {
			world := NewWorld()
			client := world.NewClient()
			bare := client.ID
			client.ID += added
			tokens := client.Connect(ctx)
			form := client.Refresh(tokens.Refresh)
			form.Set("client_id", bare)
			Expect(client.Token(ctx, form)).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh)).StatusCode).To(Equal(http.StatusOK))
		})

	It("accepts a document whose client_id has a query of its own", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		client.ID += "?edition=2"
		world.Clients.Publish(strings.TrimSuffix(client.path(), "?edition=2"), client.document(client.Redirect))
		client.ID += "&token_endpoint_auth_method=none"
		Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
	})

	DescribeTable("refuses any other difference", func(ctx SpecContext, change func(id string) string) {
		client := NewWorld().NewClient()
		client.ID = change(client.ID)
		Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
	},
		Entry("another value", func(id string) string { return id + "?token_endpoint_auth_method=private_key_jwt" }),
		Entry("a parameter before it", func(id string) string {
			return id + "?x=1&token_endpoint_auth_method=none"
		}),
	)

	It("refuses a document that has the parameter where the client does not send it", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		bare := client.ID
		client.ID += added
		world.Clients.Publish(strings.TrimPrefix(bare, world.Clients.URL("")), client.document(client.Redirect))
		Expect(client.Connect(ctx).Access).NotTo(BeEmpty())
		client.ID = bare
		Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(http.StatusBadRequest, "invalid_client"))
	})
})

var _ = Describe("Reading client metadata documents", Label("CIMD"), Ordered, ContinueOnFailure, func() {
	const good = `{"client_id":"ID","client_name":"Spec Client","redirect_uris":["http://127.0.0.1/callback"]}`
	ok := []int{http.StatusOK}
	var world *World
	BeforeAll(func() { world = NewWorld() })
	BeforeEach(func() { world.Clock.Advance(time.Minute) }) // refills the fetch budget

	DescribeTable("refuses a document", Label("A9", "C43"), func(ctx SpecContext, member string, values ...any) {
		for _, value := range values {
			client := world.ClientWith(member, value)
			Expect(client.AskFor(ctx, client.Request())).
				To(BeASafePage(http.StatusBadRequest, "invalid_client"), "%v", value)
		}
	},
		Entry("without its own client_id", Label("C23", "N6"), "client_id", "https://other.example/c.json", nil,
			raw("null"), []string{"x"}),
		Entry("without a name", Label("C24", "N6"), "client_name", nil, " \u00a0\t", 7, strings.Repeat("ä", 201)),
		Entry("without a list of redirect URIs", Label("C25", "N6"), "redirect_uris", nil, raw("null"),
			"http://127.0.0.1/callback", []string{}, raw(`["http://127.0.0.1/callback",null]`),
			strings.Split(strings.Repeat("https://a.example/ ", 50)+"https://a.example/", " ")),
		Entry("without a usable redirect URI", Label("A11", "A14", "C26", "C27"), "redirect_uris",
			[]string{"http://client.example/callback"},
			[]string{"https://a.example/?%69ss=x", "https://a.example/?a&state"},
			[]string{"http://127.0.0.1/callback#", "https://@a.example/"},
			[]string{"javascript:alert(1)", "/callback"}),
		Entry("with a secret", Label("C28"), "client_secret", "s3cret"),
		Entry("with a secret that never expires", Label("C28"), "client_secret_expires_at", 0),
		Entry("that authenticates with a secret", Label("C29", "C30"), "token_endpoint_auth_method",
			"client_secret_basic", "client_secret_jwt", 7),
		Entry("without public keys", Label("C31", "N6"), "jwks", raw(`{"keys":[{"kty":"oct","k":"k"}]}`), raw(`[]`),
			raw(`{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y","d":"d"}]}`)),
		Entry("without the code grant", Label("C32"), "grant_types", []string{"refresh_token"}, "authorization_code"),
		Entry("without the code response type", Label("C32"), "response_types", []string{"token"}),
		Entry("with a jwks_uri over http", Label("C33"), "jwks_uri", "http://client.example/keys"),
	)

	DescribeTable("refuses a client that needs", Label("C44"), func(ctx SpecContext, member string, value any) {
		client := world.ClientWith(member, value)
		Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(http.StatusBadRequest, "unauthorized_client"))
	},
		Entry("client certificates", Label("C30"), "token_endpoint_auth_method", "tls_client_auth"),
		Entry("only unsupported methods", Label("C30"), "token_endpoint_auth_methods_supported",
			[]string{"tls_client_auth", "x"}),
		Entry("DPoP", Label("C34"), "dpop_bound_access_tokens", true),
	)

	DescribeTable("accepts", func(ctx SpecContext, members params) {
		for member, value := range members {
			Expect(world.ClientWith(member, value).Connect(ctx).Scope).To(HavePrefix("mcp"), member)
		}
	},
		Entry("a name of 200 characters", Label("C24"), params{"client_name": strings.Repeat("ä", 200)}),
		Entry("one usable redirect URI among others", Label("C27"), params{"redirect_uris": []string{
			"http://client.example/", "cursor://x", "http://127.0.0.1/callback"}}),
		Entry("a method that is not the first choice", Label("C30"),
			params{"token_endpoint_auth_methods_supported": []string{"private_key_jwt", "none"}}),
		Entry("public keys", Label("C31"),
			params{"jwks": raw(`{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y"}]}`)}),
		Entry("additional grant types", Label("C32"), params{"grant_types": []string{
			"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer"}}),
		Entry("links, which it does not show", Label("C33", "N6"), params{
			"policy_uri#de":         "https://client.example/datenschutz",
			"jwks_uri":              raw("null"),
			"logo_uri":              "",
			"client_uri":            "http://client.example/",
			"policy_uri":            "/policy",
			"client_uri#ja-Jpan-JP": "data:text/html,x",
		}),
		Entry("members that demand nothing", Label("C28", "C34", "C35"), params{
			"client_secret":            raw("null"),
			"dpop_bound_access_tokens": false,
			"software_version":         params{"a": []int{1}},
		}),
	)

	DescribeTable("refuses a response", Label("A9", "N6"),
		func(ctx SpecContext, status int, answered []int, header http.Header, bodies ...string) {
			for i := range max(len(answered), len(bodies)) {
				client, code, body := world.NewClient(), answered[i%len(answered)], bodies[i%len(bodies)]
				client.says(code, header, body)
				Expect(client.AskFor(ctx, client.Request())).To(BeASafePage(status, "invalid_client"), "%s", body)
				client.says(http.StatusOK, nil, good)
				Expect(client.Consent(ctx).StatusCode).To(Equal(http.StatusOK), "a failure is not cached")
				world.Clock.Advance(time.Minute)
			}
		},
		Entry("that redirects to another URL", Label("C12", "C42"), 502, []int{301, 307},
			http.Header{"Location": {"https://client.example/c.json"}}, good),
		Entry("of another status", Label("C13", "C38", "C42"), 502, []int{204, 206, 304, 404, 500}, nil, good),
		Entry("of HTML", Label("C14", "C42"), 502, ok, http.Header{"Content-Type": {"text/html"}}, good),
		Entry("of plain text", Label("C14", "C42"), 502, ok, http.Header{"Content-Type": {"text/plain"}}, good),
		Entry("that is compressed in another way", Label("C15", "C42"), 502, ok,
			http.Header{"Content-Encoding": {"br"}}, good),
		Entry("that is too large", Label("C15", "C42"), 502, ok, nil, good+strings.Repeat(" ", 5<<10)),
		Entry("that is not one JSON object", Label("C22", "C43"), 400, ok, nil,
			good[:len(good)-1]+`,"client_name":"Other"}`, good[:len(good)-1]+`,"x":[[[[[[[[1]]]]]]]]}`,
			"\ufeff"+good, strings.Replace(good, "Spec", "\xff", 1), good+"{}", "["+good+"]", ""),
		Entry("with another client_id", Label("C10", "C22", "C23", "C43"), 400, ok, nil,
			strings.Replace(good, "client_id", "CLIENT_ID", 1), strings.Replace(good, `ID"`, `ID:443"`, 1)),
	)

	It("does not reveal why a fetch failed", Label("C41", "C17", "C18"), func(ctx SpecContext) {
		gone, stranger := httptest.NewTLSServer(http.NotFoundHandler()), httptest.NewTLSServer(http.NotFoundHandler())
		stranger.Config.ErrorLog, gone.Config.ErrorLog = nil, nil
		gone.Close()
		DeferCleanup(stranger.Close)
		var texts []string
		for _, id := range []string{gone.URL + "/c.json", stranger.URL + "/c.json", "https://10.0.0.1/c.json",
			world.Clients.URL("/none.json")} {
			answer := world.NewClient().ask(ctx, "client_id="+id)
			Expect(answer).To(BeASafePage(http.StatusBadGateway, "invalid_client"))
			host := strings.Split(id, "/")[2]
			texts = append(texts, strings.ReplaceAll(varying.ReplaceAllString(answer.Text, ""), host, ""))
		}
		Expect(texts).To(HaveEach(texts[0]))
		Expect(linesWith(world.Log.String(), "cimd_rejected")).
			To(ContainElement(ContainSubstring("prohibited IP address: 10.0.0.1")))
	})

	It("fetches the document, and no URL in it", Label("C20", "C35"), func(ctx SpecContext) {
		client, links := world.NewClient(), ""
		for _, member := range []string{"client_uri", "logo_uri", "policy_uri", "tos_uri", "jwks_uri"} {
			links += fmt.Sprintf(`,%q:%q`, member, world.Clients.URL("/"+member))
		}
		client.says(http.StatusOK, nil, good[:len(good)-1]+links+"}")
		before := world.Clients.Fetches()
		page := client.Consent(ctx)
		Expect(client.Token(ctx, client.Exchange(page.Approve(ctx, world.Token).Target().Query().Get("code"))).
			StatusCode).To(Equal(http.StatusOK))
		Expect(world.Clients.Fetches() - before).To(BeEquivalentTo(1))
		Expect(page.Text).NotTo(ContainSubstring("logo_uri"))
	})
})

// varying matches the parts that differ between two pages about the same problem.
var varying = regexp.MustCompile(`nonce="[^"]*"|<code>[A-Z2-7]{12}</code>`)

// The members are those that the clients were seen to publish or to send in 2026; docs/clients.md
// names the evidence.
var _ = Describe("Connecting well-known clients", Label("CIMD"), func() {
	refreshes := []string{"authorization_code", "refresh_token"}

	DescribeTable("by the document that they publish, without self-registration",
		func(ctx SpecContext, members params, sent string) {
			client := NewWorld().NewClient()
			members["client_id"], members["response_types"] = client.ID, []string{"code"}
			client.World.Clients.Publish(client.path(), string(must(json.Marshal(members))))
			client.Redirect = sent
			Expect(client.Connect(ctx).Refresh).NotTo(BeEmpty())
		},
		Entry("Claude", params{
			"client_name":                "Claude",
			"redirect_uris":              []string{"https://claude.ai/api/mcp/auth_callback"},
			"token_endpoint_auth_method": "none",
			"grant_types":                append(refreshes, "urn:ietf:params:oauth:grant-type:jwt-bearer"),
		}, "https://claude.ai/api/mcp/auth_callback"),
		Entry("Claude Code", Label("A13"), params{
			"client_name":                "Claude Code",
			"redirect_uris":              []string{"http://localhost/callback", "http://127.0.0.1/callback"},
			"token_endpoint_auth_method": "none",
			"grant_types":                refreshes,
		}, "http://localhost:54321/callback"),
		Entry("ChatGPT", Label("C31"), params{
			"client_name":                           "ChatGPT",
			"redirect_uris":                         []string{"https://chatgpt.com/connector_platform_oauth_redirect"},
			"token_endpoint_auth_method":            "private_key_jwt",
			"token_endpoint_auth_methods_supported": []string{"none", "private_key_jwt"},
			"token_endpoint_auth_signing_alg":       "RS256",
			"jwks_uri":                              "https://chatgpt.com/oauth/jwks.json",
			"grant_types":                           refreshes,
		}, "https://chatgpt.com/connector_platform_oauth_redirect"),
		Entry("Codex, whose path follows from the address of the server", Label("A13"), params{
			"client_name": "Codex",
			"redirect_uris": []string{"http://127.0.0.1/callback/sqXrK_ZgopWE",
				"http://localhost/callback/sqXrK_ZgopWE"},
			"token_endpoint_auth_method": "none",
			"grant_types":                refreshes,
		}, "http://127.0.0.1:5555/callback/sqXrK_ZgopWE"),
		Entry("VS Code", Label("A13", "C32"), params{
			"client_name":                "Visual Studio Code",
			"redirect_uris":              []string{"http://127.0.0.1:33418/", "https://vscode.dev/redirect"},
			"application_type":           "native",
			"token_endpoint_auth_method": "none",
			"grant_types":                append(refreshes, "urn:ietf:params:oauth:grant-type:device_code"),
		}, "http://127.0.0.1:33418/"),
		Entry("GitHub Copilot CLI, from another port than it publishes", Label("A13"), params{
			"client_name":                "GitHub Copilot CLI",
			"redirect_uris":              []string{"http://127.0.0.1:33418/"},
			"application_type":           "native",
			"token_endpoint_auth_method": "none",
		}, "http://127.0.0.1:60005/"),
		Entry("opencode", Label("A13"), params{
			"client_name":                           "opencode",
			"application_type":                      "native",
			"token_endpoint_auth_method":            "none",
			"token_endpoint_auth_methods_supported": []string{"none"},
			"redirect_uris": []string{"http://127.0.0.1/callback", "http://localhost/callback",
				"http://127.0.0.1/mcp/oauth/callback"},
			"grant_types": refreshes,
		}, "http://127.0.0.1:19876/mcp/oauth/callback"),
		Entry("Zed", Label("A13"), params{
			"client_name": "Zed", "redirect_uris": []string{"http://127.0.0.1/callback"},
			"token_endpoint_auth_method": "none",
		}, "http://127.0.0.1:41234/callback"),
	)

	DescribeTable("by their registration request",
		Label("RFC 7591"), func(ctx SpecContext, members params, sent string) {
			world := NewWorld(selfRegistration)
			answer := world.Register(ctx, members)
			Expect(answer.StatusCode).To(Equal(http.StatusCreated), answer.Text)
			client := world.NewClient()
			client.ID, client.Redirect = decode(answer)["client_id"].(string), sent
			Expect(client.Connect(ctx).Refresh).NotTo(BeEmpty())
		},
		Entry("Cursor, with its scheme", Label("L4", "L5"), cursorRegistration(),
			"cursor://anysphere.cursor-mcp/oauth/callback"),
		Entry("Cursor, with loopback", Label("L4", "L5", "A13"), cursorRegistration(),
			"http://localhost:8787/callback"),
		Entry("Cursor, in the cloud", Label("L4", "L5"), cursorRegistration(),
			"https://www.cursor.com/agents/mcp/oauth/callback"),
		Entry("VS Code without metadata documents", Label("L6", "A13"), params{
			"client_name":                "Visual Studio Code",
			"client_uri":                 "https://code.visualstudio.com",
			"scope":                      "mcp",
			"application_type":           "native",
			"grant_types":                append(refreshes, "urn:ietf:params:oauth:grant-type:device_code"),
			"response_types":             []string{"code"},
			"token_endpoint_auth_method": "none",
			"redirect_uris": []string{"https://insiders.vscode.dev/redirect",
				"https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"},
		}, "http://127.0.0.1:50123/"),
		Entry("Gemini CLI, with an empty scope", Label("L3"), params{
			"client_name":                "Gemini CLI MCP Client",
			"redirect_uris":              []string{"http://localhost:7777/oauth/callback"},
			"grant_types":                refreshes,
			"response_types":             []string{"code"},
			"token_endpoint_auth_method": "none",
			"scope":                      "",
		}, "http://localhost:7777/oauth/callback"),
		Entry("GitHub Copilot CLI of before September 2026, from another port than it registered", Label("A13"), params{
			"client_name":                "GitHub Copilot CLI",
			"redirect_uris":              []string{"http://127.0.0.1:56679/"},
			"grant_types":                refreshes,
			"response_types":             []string{"code"},
			"token_endpoint_auth_method": "none",
			"application_type":           "native",
		}, "http://127.0.0.1:56680/"),
		Entry("LM Studio, without grant types", Label("L6"),
			params{"client_name": "LM Studio", "redirect_uris": []string{"http://127.0.0.1:33389/callback"}},
			"http://127.0.0.1:33389/callback"),
		Entry("Warp", Label("L5"),
			params{"client_name": "Warp", "redirect_uris": []string{"warp://mcp/oauth2callback"},
				"grant_types": refreshes}, "warp://mcp/oauth2callback"),
		Entry("Cline", Label("L5"),
			params{"client_name": "Cline",
				"redirect_uris": []string{"vscode://saoudrizwan.claude-dev/mcp-auth/callback/0a1b2c"},
				"grant_types":   refreshes},
			"vscode://saoudrizwan.claude-dev/mcp-auth/callback/0a1b2c"),
		Entry("Raycast", Label("L5"), params{
			"client_name":   "Raycast MCP: Site",
			"redirect_uris": []string{"raycast://oauth?package_name=mcp_server_site"},
			"grant_types":   append(refreshes, "urn:ietf:params:oauth:grant-type:device_code"),
		}, "raycast://oauth?package_name=mcp_server_site"),
		Entry("Amp", params{
			"client_name": "Amp MCP Client (site)", "redirect_uris": []string{"http://localhost:41592/oauth/callback"},
			"grant_types": refreshes,
		}, "http://localhost:41592/oauth/callback"),
	)
})

// cursorRegistration has the redirect URIs that Cursor 3.20 registers together.
func cursorRegistration() params {
	return params{
		"client_name":                "Cursor",
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"response_types":             []string{"code"},
		"token_endpoint_auth_method": "none",
		"redirect_uris": []string{
			"https://www.cursor.com/agents/mcp/oauth/callback", "https://www.cursor.com/bot/mcp/oauth/callback",
			"cursor://anysphere.cursor-mcp/oauth/callback",
			"http://localhost:8787/callback", "grokbot://mcp/oauth/callback",
		},
	}
}
