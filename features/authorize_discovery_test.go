package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func decode(answer Response) map[string]any {
	GinkgoHelper()
	var members map[string]any
	Expect(json.Unmarshal([]byte(answer.Text), &members)).To(Succeed(), answer.Text)
	return members
}

func request(ctx context.Context, method, target string, header http.Header) Response {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, target, nil)
	Expect(err).NotTo(HaveOccurred())
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
	var world *World
	BeforeEach(func() { world = NewWorld() })

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
