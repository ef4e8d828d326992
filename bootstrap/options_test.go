package bootstrap_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Protecting an MCP server with options", func() {
	It("refuses to register with origins and hosts that no browser sends", Label("G1", "F9"), func() {
		h := openHost(oauth.Config{Issuer: "https://cms.example"}, openStore(), nil)
		server := bootstrap.Guard(func(http.ResponseWriter, *http.Request, oauth.Caller) {},
			bootstrap.WithOAuth(h.authz),
			bootstrap.WithAllowedOrigins("*", "https://app.example/"),
			bootstrap.WithAllowedHosts("http://tunnel.example"), bootstrap.WithMaxRequestBody(-1))
		Expect(server.Register(echo.New())).
			To(MatchError(And(ContainSubstring(`WithAllowedOrigins has "*": write scheme://host or scheme://host:port`),
				ContainSubstring(`WithAllowedOrigins has "https://app.example/": write scheme://host`),
				ContainSubstring(`WithAllowedHosts has "http://tunnel.example": write host or host:port`),
				ContainSubstring("WithMaxRequestBody is -1 bytes: choose 64 KiB to"))))
	})

	It("omits scopes that cannot be quoted from the challenge", Label("G12"), func() {
		h := openHost(oauth.Config{Issuer: "https://cms.example"}, openStore(), nil,
			bootstrap.WithToolScopes(func(string) oauth.Scopes { return oauth.NewScopes(`a" realm="evil`) }))
		refused := h.send(tokensOf(h.exchange(h.code())).Access,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
		Expect(refused.Code).To(Equal(http.StatusForbidden))
		Expect(refused.Header().Get("WWW-Authenticate")).
			To(And(ContainSubstring("insufficient_scope"), Not(ContainSubstring("evil"))))
	})

	DescribeTable("requires the default scopes of a tool without scopes of its own",
		Label("G10"), func(option bootstrap.MCPOption) {
			h := openHost(oauth.Config{
				Issuer:        "https://cms.example",
				Verifier:      knowsScopes{"mcp", "write"},
				Scopes:        []oauth.Scope{{Name: "mcp"}, {Name: "write"}},
				DefaultScopes: []string{"mcp"},
			}, openStore(), nil, option)
			call := func(scope, tool string) *httptest.ResponseRecorder {
				GinkgoHelper()
				code := h.code(func(v url.Values) { v.Set("scope", scope) })
				return h.send(tokensOf(h.exchange(code)).Access,
					`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`)
			}
			Expect(call("write", "write").Code).NotTo(Equal(http.StatusForbidden))
			refused := call("write", "forgotten")
			Expect(refused.Code).To(Equal(http.StatusForbidden))
			Expect(refused.Header().Get("WWW-Authenticate")).
				To(And(ContainSubstring(`error="insufficient_scope"`), ContainSubstring(`scope="mcp"`)))
			Expect(call("mcp", "forgotten").Code).NotTo(Equal(http.StatusForbidden))
		},
		Entry("by its name", bootstrap.WithToolScopes(scopesOfWrite)),
		Entry("by its arguments", bootstrap.WithToolScopes(func(tool string, _ map[string]any) oauth.Scopes {
			return scopesOfWrite(tool)
		})),
	)
})

// scopesOfWrite forgets every tool but one.
func scopesOfWrite(tool string) (needed oauth.Scopes) {
	if tool == "write" {
		needed = oauth.NewScopes("write")
	}
	return needed
}

// knowsScopes is a verifier whose tokens may grant these scopes.
type knowsScopes []string

func (k knowsScopes) VerifyBearer(context.Context, string) (oauth.Principal, error) {
	return oauth.Principal{Subject: "ada", Scopes: k}, nil
}
