package features_test

import (
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The members are those that the clients were seen to publish or to send in 2026; docs/clients.md
// names the evidence.
var _ = Describe("Connecting well-known clients", Label("CIMD"), func() {
	refreshes := []string{"authorization_code", "refresh_token"}

	DescribeTable("by the document that they publish, without self-registration",
		func(ctx SpecContext, members params, sent string) {
			client := NewWorld().NewClient()
			members["client_id"], members["response_types"] = client.ID, []string{"code"}
			document, err := json.Marshal(members)
			Expect(err).NotTo(HaveOccurred())
			client.World.Clients.Publish(client.path(), string(document))
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
			client.ID, client.Redirect = decodeAny(answer)["client_id"].(string), sent
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
