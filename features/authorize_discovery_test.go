package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

func decode(answer Response) map[string]any {
	GinkgoHelper()
	var members map[string]any
	Expect(json.Unmarshal([]byte(answer.Text), &members)).To(Succeed(), answer.Text)
	return members
}

func request(ctx context.Context, method, target string, header http.Header) Response {
	GinkgoHelper()
	r := must(http.NewRequestWithContext(ctx, method, target, nil))
	for name, values := range header {
		r.Header[name] = values
	}
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	return Send(r)
}

var _ = Describe("Discovering the authorization server", Label("RFC 8414", "RFC 9728"), func() {
	const serverMetadata, resourceMetadata = "/.well-known/oauth-authorization-server",
		"/.well-known/oauth-protected-resource"
	world := EachWorld()

	It("publishes exactly the members that clients need", Label("F2", "F3", "F4"), func(ctx SpecContext) {
		Expect(decode(Get(ctx, world.Issuer+serverMetadata))).To(Equal(map[string]any{
			"issuer":                                                world.Issuer,
			"authorization_endpoint":                                world.Issuer + "/oauth/authorize",
			"token_endpoint":                                        world.Issuer + "/oauth/token",
			"revocation_endpoint":                                   world.Issuer + "/oauth/revoke",
			"response_types_supported":                              []any{"code"},
			"response_modes_supported":                              []any{"query"},
			"grant_types_supported":                                 []any{"authorization_code", "refresh_token"},
			"token_endpoint_auth_methods_supported":                 []any{"none", "private_key_jwt"},
			"token_endpoint_auth_signing_alg_values_supported":      []any{"ES256", "RS256", "PS256", "EdDSA"},
			"revocation_endpoint_auth_methods_supported":            []any{"none", "private_key_jwt"},
			"revocation_endpoint_auth_signing_alg_values_supported": []any{"ES256", "RS256", "PS256", "EdDSA"},
			"code_challenge_methods_supported":                      []any{"S256"},
			"scopes_supported":                                      []any{"mcp", "offline_access"},
			"authorization_response_iss_parameter_supported":        true,
			"client_id_metadata_document_supported":                 true,
			"protected_resources":                                   []any{world.MCP()},
		}))
	})

	DescribeTable("publishes the protected resource", Label("F6", "F7"), func(ctx SpecContext, path string) {
		Expect(decode(Get(ctx, world.Issuer+path))).To(Equal(map[string]any{
			"resource":                 world.MCP(),
			"authorization_servers":    []any{world.Issuer},
			"scopes_supported":         []any{"mcp"},
			"bearer_methods_supported": []any{"header"},
			"resource_name":            "Demo site",
		}))
	},
		Entry("at the path-inserted address", resourceMetadata+"/mcp"),
		Entry("at the root address", resourceMetadata),
	)

	DescribeTable("serves each document as plain, cacheable JSON to every origin",
		Label("F1", "F10"), func(ctx SpecContext, path string) {
			answer := Get(ctx, world.Issuer+path)
			Expect(answer.StatusCode).To(Equal(http.StatusOK))
			Expect(answer.Header.Get("Content-Type")).To(Equal("application/json"))
			Expect(answer.Header.Get("Access-Control-Allow-Origin")).To(Equal("*"))
			Expect(answer.Header.Get("Cache-Control")).To(Equal("public, max-age=300"))
			Expect(answer.Text).NotTo(ContainSubstring("null"))

			again := request(ctx, http.MethodGet, world.Issuer+path,
				http.Header{"If-None-Match": {answer.Header.Get("ETag")}})
			Expect(again.StatusCode).To(Equal(http.StatusNotModified))

			head := request(ctx, http.MethodHead, world.Issuer+path, nil)
			Expect(head.StatusCode).To(Equal(http.StatusOK))
			Expect(head.Text).To(BeEmpty())

			preflight := request(ctx, http.MethodOptions, world.Issuer+path,
				http.Header{"Origin": {"https://app.example"}, "Access-Control-Request-Method": {"GET"}})
			Expect(preflight.StatusCode).To(Equal(http.StatusNoContent))
			Expect(preflight.Header.Get("Access-Control-Allow-Headers")).To(ContainSubstring("MCP-Protocol-Version"))
		},
		Entry("server metadata", serverMetadata),
		Entry("resource metadata", resourceMetadata+"/mcp"),
		Entry("resource metadata at the root", resourceMetadata),
	)

	DescribeTable("sends a document only to a client without the current version",
		Label("F1", "RFC 9110"), func(ctx SpecContext, known string, status int) {
			tag := Get(ctx, world.Issuer+serverMetadata).Header.Get("ETag")
			answer := request(ctx, http.MethodGet, world.Issuer+serverMetadata,
				http.Header{"If-None-Match": {strings.ReplaceAll(known, "TAG", tag)}})
			Expect(answer.StatusCode).To(Equal(status))
			Expect(answer.Header.Get("ETag")).To(Equal(tag))
			Expect(answer.Header.Get("Cache-Control")).To(Equal("public, max-age=300"))
			Expect(answer.Text == "").To(Equal(status == http.StatusNotModified))
		},
		Entry("not for the same tag", "TAG", http.StatusNotModified),
		Entry("not for the weak tag that a proxy has made of it", "W/TAG", http.StatusNotModified),
		Entry("for another tag", `"another"`, http.StatusOK),
	)

	It("takes every URL from its configuration, never from the request", Label("F8"), func(ctx SpecContext) {
		for _, path := range []string{serverMetadata, resourceMetadata + "/mcp"} {
			answer := request(ctx, http.MethodGet, world.Issuer+path,
				http.Header{"Host": {"evil.example"}, "X-Forwarded-Host": {"evil.example"},
					"X-Forwarded-Proto": {"https"}})
			Expect(answer.Text).To(ContainSubstring(world.Issuer))
			Expect(answer.Text).NotTo(ContainSubstring("evil.example"))
		}
	})

	It("has no other endpoint", Label("F4", "F5", "F6", "F11"), func(ctx SpecContext) {
		for _, path := range []string{"/.well-known/openid-configuration", "/.well-known/openid-configuration/mcp",
			"/oauth/register", resourceMetadata + "/other", "/authorize", "/token", "/register"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				Expect(request(ctx, method, world.Issuer+path, nil).StatusCode).To(Equal(http.StatusNotFound), path)
			}
		}
	})

	It("implements what the metadata lists", Label("F12"), func(ctx SpecContext) {
		listed, client := decode(Get(ctx, world.Issuer+serverMetadata)), world.NewClient()
		for _, scope := range listed["scopes_supported"].([]any) {
			tokens := client.Connect(ctx, set("scope", scope.(string)))
			Expect(strings.Fields(tokens.Scope)).To(ContainElement(scope))
			Expect(tokens.Refresh != "").To(Equal(scope == "offline_access"))
		}
		for _, endpoint := range []string{"token_endpoint", "revocation_endpoint"} {
			Expect(Post(ctx, listed[endpoint].(string), nil).StatusCode).NotTo(Equal(http.StatusNotFound))
		}
		for _, grant := range listed["grant_types_supported"].([]any) {
			form := client.Exchange("")
			form.Set("grant_type", grant.(string))
			Expect(client.Token(ctx, form)).To(BeRefusedAs(400, "invalid_request"))
		}
	})

	It("never redirects", Label("F10"), func(ctx SpecContext) {
		for _, path := range []string{serverMetadata + "/", "/" + serverMetadata, resourceMetadata + "/",
			"/oauth/token/", "//oauth/token", "/oauth/../oauth/token", "/oauth/revoke/"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				Expect(request(ctx, method, world.Issuer+path, nil).StatusCode).
					NotTo(And(BeNumerically(">=", 300), BeNumerically("<", 400)), path)
			}
		}
	})
})

var _ = Describe("Serving further well-known files", Label("F18"), func() {
	var folder string
	write := func(name, text string) {
		GinkgoHelper()
		Expect(os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)).To(Succeed())
	}
	serving := func(config *service.Config) { config.WellKnownFiles = folder }
	BeforeEach(func() {
		folder = filepath.Join(GinkgoT().TempDir(), "files")
		write("openai-apps-challenge", "a-challenge")
	})

	DescribeTable("serves a file by its name and type:", func(ctx SpecContext, name, kind string) {
		write(name, `{"text":"of the file"}`)
		world := NewWorld(serving)
		got := Get(ctx, world.Issuer+"/.well-known/"+name)
		Expect(got.StatusCode).To(Equal(http.StatusOK))
		Expect(got.Text).To(Equal(`{"text":"of the file"}`))
		Expect(got.Header.Get("Content-Type")).To(HavePrefix(kind))
		Expect(got.Header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
		head := request(ctx, http.MethodHead, world.Issuer+"/.well-known/"+name, nil)
		Expect([]any{head.StatusCode, head.Text, head.ContentLength}).To(Equal([]any{http.StatusOK, "", int64(22)}))
		Expect(request(ctx, http.MethodPost, world.Issuer+"/.well-known/"+name, nil).StatusCode).
			To(Equal(http.StatusMethodNotAllowed))
	},
		Entry("a document without an extension", "apple-app-site-association", "application/json"),
		Entry("a text", "security.txt", "text/plain"),
		Entry("a document", "agent-card.json", "application/json"),
		Entry("a document in a folder", "mcp/server-card.json", "application/json"),
		Entry("another file", "key.unknown-extension", "application/octet-stream"),
	)

	It("serves a text without an extension", func(ctx SpecContext) {
		got := Get(ctx, NewWorld(serving).Issuer+"/.well-known/openai-apps-challenge")
		Expect(got.Text).To(Equal("a-challenge"))
		Expect(got.Header.Get("Content-Type")).To(HavePrefix("text/plain"))
	})

	It("answers 404, as for a file that does not exist, for what is not its own", func(ctx SpecContext) {
		world := NewWorld(serving)
		write(".hidden", "a secret")
		write("../outside", "a secret")
		write("folder/file", "in a folder")
		Expect(os.Symlink("../outside", filepath.Join(folder, "link"))).To(Succeed())
		write("large", strings.Repeat("x", 1<<20+1))
		below := []string{"oauth-authorization-server/other", "oauth-protected-resource/other",
			"openid-configuration/other"}
		for _, own := range below {
			write(own, "an impostor")
		}
		for _, path := range append(below, "nothing", "folder", "..%2foutside", "%2e%2e/outside", "link", ".hidden",
			"large") {
			got := Get(ctx, world.Issuer+"/.well-known/"+path)
			Expect(got.StatusCode).To(Equal(http.StatusNotFound), path)
			Expect(got.Text).NotTo(ContainSubstring("secret"))
		}
		Expect(Get(ctx, world.Issuer+"/.well-known/openai-apps-challenge").Text).To(Equal("a-challenge"))
	})

	It("never serves a file in place of its own documents", func(ctx SpecContext) {
		world := NewWorld(serving)
		own := Get(ctx, world.Issuer+"/.well-known/oauth-authorization-server").Text
		write("oauth-authorization-server", "an impostor")
		Expect(Get(ctx, world.Issuer+"/.well-known/oauth-authorization-server").Text).To(Equal(own))
	})

	DescribeTable("reports at the start", func(name, text, mistake string) {
		if name != "" {
			write(name, text)
		} else {
			folder = filepath.Join(folder, "missing")
		}
		config := service.DefaultConfig()
		config.Issuer, config.WellKnownFiles = "https://cms.example", folder
		_, err := service.Open(GinkgoT().Context(), *config)
		Expect(err).To(MatchError(ContainSubstring(mistake)))
	},
		Entry("a folder that does not exist", "", "", "no such file or directory"),
		Entry("a file with the name of an own document", "oauth-protected-resource", "{}",
			"oauth-protected-resource has the name of a document of this server: rename it"),
		Entry("a file that is too large", "large.txt", strings.Repeat("x", 1<<20+1),
			"large.txt has more than 1048576 bytes"),
	)
})

func linked(config *service.Config) {
	config.Links = oauth.Links{
		{Name: oauth.ServiceDocumentation, URL: "https://cms.example/developers"},
		{Name: oauth.OperatorPolicy, URL: "https://cms.example/privacy"},
		{Name: oauth.OperatorTerms, URL: "https://cms.example/terms"},
		{Name: oauth.ResourceDocumentation, URL: "https://cms.example/mcp-help"},
		{Name: oauth.ResourcePolicy, URL: "https://cms.example/privacy"},
		{Name: oauth.ResourceTerms, URL: "https://cms.example/mcp-terms"},
	}
}

var _ = Describe("Publishing links of the operator", Label("F19", "RFC 8414", "RFC 9728"), func() {
	It("has them in the metadata", func(ctx SpecContext) {
		world := NewWorld(linked)
		Expect(decode(Get(ctx, world.Issuer+"/.well-known/oauth-authorization-server"))).To(And(
			HaveKeyWithValue("service_documentation", "https://cms.example/developers"),
			HaveKeyWithValue("op_policy_uri", "https://cms.example/privacy"),
			HaveKeyWithValue("op_tos_uri", "https://cms.example/terms")))
		Expect(decode(Get(ctx, world.Issuer+"/.well-known/oauth-protected-resource/mcp"))).To(And(
			HaveKeyWithValue("resource_documentation", "https://cms.example/mcp-help"),
			HaveKeyWithValue("resource_policy_uri", "https://cms.example/privacy"),
			HaveKeyWithValue("resource_tos_uri", "https://cms.example/mcp-terms")))
	})

	It("has each once on the consent page and the connections page, and none by default", func(ctx SpecContext) {
		for _, linking := range []bool{false, true} {
			world := NewWorld(func(config *service.Config) {
				if linking {
					linked(config)
				}
			})
			times := map[bool]int{true: 1}[linking]
			for _, page := range []string{world.NewClient().Consent(ctx).Text,
				Get(ctx, world.Issuer+"/oauth/connections").Text} {
				for _, link := range []string{`https://cms.example/developers" target="_blank"`,
					"https://cms.example/privacy", "https://cms.example/terms", "https://cms.example/mcp-help",
					"https://cms.example/mcp-terms"} {
					Expect(strings.Count(page, `href="`+link)).To(Equal(times), link)
				}
			}
		}
	})

	DescribeTable("reports", func(mistake string, links ...oauth.Link) {
		config := service.DefaultConfig()
		config.Issuer, config.Links = "https://cms.example", links
		_, err := service.Open(GinkgoT().Context(), *config)
		Expect(err).To(MatchError(ContainSubstring(mistake)))
	},
		Entry("what is not the address of a web page",
			`Links has "terms.html" for op_tos_uri: give the address of a web page`,
			oauth.Link{Name: oauth.OperatorTerms, URL: "terms.html"}),
		Entry("an unknown name", `Links has the unknown name "tos": choose one of service_documentation, op_policy_uri`,
			oauth.Link{Name: "tos", URL: "https://cms.example/terms"}),
		Entry("a name twice", "Links has op_tos_uri twice: keep one",
			oauth.Link{Name: oauth.OperatorTerms, URL: "https://cms.example/terms"},
			oauth.Link{Name: oauth.OperatorTerms, URL: "https://cms.example/more"}),
	)
})
