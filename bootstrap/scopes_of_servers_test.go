package bootstrap_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

// accounts are the tokens of a site with their owners.
type accounts map[string]oauth.Principal

// VerifyBearer implements oauth.BearerVerifier.
func (a accounts) VerifyBearer(_ context.Context, token string) (oauth.Principal, error) {
	if owner, known := a[token]; known {
		return owner, nil
	}
	return oauth.Principal{}, oauth.ErrUnknownBearer
}

// mounted mounts two MCP servers, the second one below /admin, where the site has pages behind a
// login.
func mounted(first, second *bootstrap.MCPServer) http.Handler {
	r, more := chi.NewRouter(), handlerOf(second)
	r.Route("/admin", adminPages)
	for _, path := range []string{
		"/admin/mcp", "/admin/mcp/*", "/.well-known/oauth-protected-resource/admin/mcp",
	} {
		r.Handle(path, more)
	}
	r.NotFound(handlerOf(first).ServeHTTP)
	return r
}

func adminPages(r chi.Router) {
	r.Use(middleware.BasicAuth("admin", map[string]string{"root": "root"}))
	r.Get("/users", about)
}

// newsroom is a site with an MCP server for articles and one for its administration.
type newsroom struct {
	*pasteporttest.Site
	authz *bootstrap.OAuthServer
}

func openNewsroom() newsroom {
	GinkgoHelper()
	site := pasteporttest.New(GinkgoTB())
	tokens := accounts{
		"ada-token":  {Subject: "ada", Scopes: []string{"articles"}},
		"root-token": {Subject: "root", Scopes: []string{"articles", "admin"}},
	}
	authz, err := bootstrap.NewOAuthServer(site.Config(oauth.Config{
		Issuer:   "https://news.example",
		Verifier: tokens,
		Scopes:   []oauth.Scope{{Name: "articles"}},
		MoreServers: []oauth.ProtectedServer{
			{Resource: "https://news.example/admin/mcp", Name: "Admin", Scopes: []oauth.Scope{{Name: "admin"}}},
		},
	}), openStore(), bootstrap.WithRootCAs(site.RootCAs()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(authz.Close)
	server := func(options ...bootstrap.MCPOption) *bootstrap.MCPServer {
		tools := mcp.NewServer(&mcp.Implementation{Name: "news", Version: "1"}, nil)
		mcp.AddTool(tools, &mcp.Tool{Name: "greet"}, greet)
		return bootstrap.NewMCPServer(tools, append(options, bootstrap.WithOAuth(authz))...)
	}
	more := authz.Resources()[1].Resource.String()
	site.Serve(mounted(server(), server(bootstrap.WithResource(more))))
	return newsroom{site, authz}
}

var _ = Describe("A site with two MCP servers that have scopes of their own", func() {
	It("grants each token the scopes of the server, below one of its own paths",
		Label("F21", "F16"), func(ctx SpecContext) {
			news := openNewsroom()
			for path, scope := range map[string]string{"/mcp": "articles", "/admin/mcp": "admin"} {
				root := news.At(path).Connect("root-token")
				Expect(root.Scopes()).To(ConsistOf(scope, oauth.OfflineAccess))
				_, err := root.Session().CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: greeting{"Root"}})
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(news.Connect("ada-token").Scopes()).To(ConsistOf("articles", oauth.OfflineAccess))
			_, err := news.At("/admin/mcp").TryConnect("ada-token")
			Expect(err).To(MatchError(ContainSubstring("access_denied")))
			response, err := http.Get(news.URL() + "/admin/users")
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Body.Close()).To(Succeed())
			Expect(response.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(response.Header.Get("WWW-Authenticate")).To(HavePrefix("Basic"))
		})

	It("names only its own scopes in the metadata and the challenge of each", Label("F17", "F21"), func() {
		news := openNewsroom()
		get := func(path string) (*http.Response, map[string]any) {
			GinkgoHelper()
			response, err := http.Get(news.URL() + path)
			Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			var members map[string]any
			_ = json.NewDecoder(response.Body).Decode(&members) // a challenge has no body
			return response, members
		}
		for path, scope := range map[string]string{"/mcp": "articles", "/admin/mcp": "admin"} {
			_, metadata := get("/.well-known/oauth-protected-resource" + path)
			Expect(metadata).To(HaveKeyWithValue("scopes_supported", ConsistOf(scope)))
			challenge, _ := get(path)
			Expect(challenge.Header.Get("WWW-Authenticate")).To(HaveSuffix(`scope="` + scope + `"`))
		}
		_, metadata := get("/.well-known/oauth-authorization-server")
		Expect(metadata).To(HaveKeyWithValue("scopes_supported", ConsistOf("articles", "admin", oauth.OfflineAccess)))
	})

	It("offers only its own scopes on the pages of each", Label("A1", "F21"), func() {
		const issuer = "https://news.example"
		server := openHost(oauth.Config{
			Issuer: issuer,
			Scopes: []oauth.Scope{{Name: "articles", Description: "Read articles"}},
			MoreServers: []oauth.ProtectedServer{{
				Resource: issuer + "/admin/mcp",
				Scopes: []oauth.Scope{
					{Name: "admin", Description: "Manage accounts"}, {Name: "log", Description: "Read the log"},
				},
			}},
		}, openStore(), nil)
		all := scope("articles admin log")
		Expect(server.ask(all).Body.String()).
			To(And(ContainSubstring("Read articles"), Not(ContainSubstring("Manage accounts"))))
		Expect(server.ask(all, resource(issuer+"/admin/mcp")).Body.String()).
			To(And(ContainSubstring("Manage accounts"), ContainSubstring("Read the log"),
				Not(ContainSubstring("Read articles"))))
		tokens := tokensOf(server.exchange(server.code(all, resource(issuer+"/admin/mcp"))))
		Expect(tokens.Scope).To(Equal("admin"))
		page := server.post("/oauth/connections", url.Values{"decision": {"show"}, "bearer_token": {"host-token"}})
		Expect(page.Body.String()).To(And(ContainSubstring("Manage accounts"), Not(ContainSubstring("Read articles"))))
	})
})
