package bootstrap_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

// serveTools runs a site on loopback with a tool "read" for all callers and a tool "write" that
// needs another scope.
func serveTools() *host {
	GinkgoHelper()
	site := pasteporttest.New(GinkgoTB())
	knowing := newFakeVerifier()
	knowing.set(func(string) (oauth.Principal, error) {
		return oauth.Principal{Subject: "ada", Scopes: []string{"mcp", "mcp:write"}}, nil
	})
	authz, err := bootstrap.NewOAuthServer(site.Config(oauth.Config{
		Verifier: knowing, Scopes: []oauth.Scope{{Name: "mcp"}, {Name: "mcp:write"}}, DefaultScopes: []string{"mcp"},
	}), openStore(), bootstrap.WithClientDirectory(published{}))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(authz.Close)
	h := &host{Echo: echo.New(), issuer: site.URL(), authz: authz}
	tools := mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil)
	for _, name := range []string{"read", "write"} {
		mcp.AddTool(tools, &mcp.Tool{Name: name},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, struct{}, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " ran"}}},
					struct{}{}, nil
			})
	}
	server := bootstrap.NewMCPServer(tools, bootstrap.WithOAuth(h.authz),
		bootstrap.WithToolScopes(func(tool string) oauth.Scopes {
			if tool == "write" {
				return oauth.NewScopes("mcp:write")
			}
			return oauth.NewScopes("mcp")
		}))
	Expect(server.Register(h.Echo)).To(Succeed())
	site.Serve(h.Echo)
	return h
}

var _ = Describe("Stepping up", Label("N9", "G10"), func() {
	It("lets the official Go client call a tool that needs another scope after the person has approved again",
		func(ctx SpecContext) {
			site := serveTools()
			var asked []string
			login, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
				ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: clientID},
				RedirectURL:                    callback,
				RequestRefreshToken:            true,
				AuthorizationCodeFetcher: func(_ context.Context,
					args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
					request, err := url.Parse(args.URL)
					if err != nil {
						return nil, err
					}
					asked = append(asked, request.Query().Get("scope"))
					form := ticketField.FindStringSubmatch(
						answer(site.Echo, httptest.NewRequest(http.MethodGet, args.URL, http.NoBody)).Body.String())
					if form == nil {
						return nil, errors.New("there is no consent page")
					}
					back, err := url.Parse(site.approve(form[1]).Header().Get("Location"))
					if err != nil {
						return nil, err
					}
					return &auth.AuthorizationResult{Code: back.Query().Get("code"), State: back.Query().Get("state"),
						Iss: back.Query().Get("iss")}, nil
				},
			})
			Expect(err).NotTo(HaveOccurred())
			client := mcp.NewClient(&mcp.Implementation{Name: "stepping", Version: "1"}, nil)
			session, err := client.Connect(ctx,
				&mcp.StreamableClientTransport{Endpoint: site.issuer + "/mcp", OAuthHandler: login}, nil)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(session.Close)
			call := func(tool string) string {
				GinkgoHelper()
				result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
				Expect(err).NotTo(HaveOccurred())
				return result.Content[0].(*mcp.TextContent).Text
			}
			Expect(call("read")).To(Equal("read ran"))
			Expect(asked).To(HaveLen(1))
			Expect(call("write")).To(Equal("write ran"))
			Expect(asked).To(HaveLen(2))
			Expect(oauth.ParseScopes(asked[1])).To(WithTransform(func(s oauth.Scopes) bool {
				return s.Has("mcp") && s.Has("mcp:write")
			}, BeTrue()))
			Expect(call("write")).To(Equal("write ran"))
			Expect(asked).To(HaveLen(2))
		}, SpecTimeout(time.Minute))
})
