package bootstrap_test

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// embedding is what a host writes to embed an MCP server, for specs that change one thing of it.
type embedding struct {
	config       oauth.Config
	store        oauth.Store
	oauthOptions []bootstrap.OAuthOption
	tools        *mcp.Server
	options      []bootstrap.MCPOption
	withoutOAuth bool
	site         *echo.Echo
	register     func(server *bootstrap.MCPServer) error
}

func newEmbedding() *embedding {
	e := &embedding{store: openStore(), site: echo.New(),
		tools: mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, &mcp.ServerOptions{PageSize: 1})}
	e.config = oauth.Config{
		Issuer: issuer,
		VerifyBearer: func(string) bool {
			return true
		},
		Logger:      slog.New(slog.DiscardHandler),
		MoreServers: []oauth.ProtectedServer{{Resource: issuer + "/more", Name: "More"}},
	}
	for _, name := range []string{"a", "read", "write"} {
		mcp.AddTool(e.tools, &mcp.Tool{Name: name},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			})
	}
	e.register = func(server *bootstrap.MCPServer) error { return server.Register(e.site) }
	return e
}

// run follows the four steps.
func (e *embedding) run() error {
	authz, err := bootstrap.NewOAuthServer(e.config, e.store, e.oauthOptions...)
	if err != nil {
		return err
	}
	DeferCleanup(authz.Close)
	if !e.withoutOAuth {
		e.options = append(e.options, bootstrap.WithOAuth(authz))
	}
	return e.register(bootstrap.NewMCPServer(e.tools, e.options...))
}

// missing is a verifier whose constructor has failed.
type missing struct{}

func (*missing) VerifyBearer(context.Context, string) (oauth.Principal, error) { panic("unreachable") }

func hasParts(parts ...string) types.GomegaMatcher {
	var all []types.GomegaMatcher
	for _, part := range parts {
		all = append(all, ContainSubstring(part))
	}
	return MatchError(And(all...))
}

// answerTo returns a handler of the site.
func answerTo(text string) echo.HandlerFunc {
	return func(c echo.Context) error { return c.String(http.StatusOK, text) }
}

var _ = Describe("A host that makes a mistake when it embeds", Label("F14"), func() {
	wantsScope := func(name string) bootstrap.MCPOption {
		return bootstrap.WithToolScopes(func(tool string) oauth.Scopes {
			if tool == "write" {
				return oauth.NewScopes(name)
			}
			return oauth.NewScopes("mcp")
		})
	}

	It("registers without a mistake", func() {
		e := newEmbedding()
		e.options = []bootstrap.MCPOption{wantsScope("mcp")}
		e.site.GET("/", answerTo("home"))
		e.site.Any("/*", answerTo("page"))
		e.site.POST("/mcp/admin", answerTo("admin"))
		e.site.PUT("/mcp", answerTo("put"))
		Expect(e.run()).To(Succeed())
	})

	DescribeTable("is told the mistake and the remedy, without a panic:",
		func(mistake func(*embedding), parts ...string) {
			e := newEmbedding()
			mistake(e)
			Expect(e.run()).To(hasParts(parts...))
		},
		Entry("a nil Echo", func(e *embedding) { e.site = nil }, "the Echo is nil: pass that of the site"),
		Entry("a nil option of the MCP server", func(e *embedding) {
			e.options = append(e.options, nil)
		}, "option 1 is nil: leave it out"),
		Entry("a nil option of the OAuth server", func(e *embedding) {
			e.oauthOptions = []bootstrap.OAuthOption{bootstrap.WithClientDirectory(published{}), nil}
		}, "option 2 is nil: leave it out"),
		Entry("a store whose pointer is nil", func(e *embedding) {
			e.store = (*persistence.Store)(nil)
		}, "the store is nil: open one"),
		Entry("a verifier whose pointer is nil", func(e *embedding) {
			e.config.VerifyBearer, e.config.Verifier = nil, (*missing)(nil)
		}, "Verifier is a nil *bootstrap_test.missing: set one"),
		Entry("a verifier of another server whose pointer is nil", func(e *embedding) {
			e.config.MoreServers[0].Verifier = (*missing)(nil)
		}, "MoreServers has a nil", "/more: leave its Verifier out"),
		Entry("a client directory whose pointer is nil", func(e *embedding) {
			e.oauthOptions = []bootstrap.OAuthOption{bootstrap.WithClientDirectory((*published)(nil))}
		}, "WithClientDirectory has a nil *bootstrap_test.published: leave the option out"),
		Entry("the nil OAuth server that came with an error", func(e *embedding) {
			e.withoutOAuth, e.options = true, []bootstrap.MCPOption{bootstrap.WithOAuth(nil)}
		}, "the OAuth server is nil: look at the error of NewOAuthServer"),
		Entry("no OAuth server", func(e *embedding) {
			e.withoutOAuth = true
		}, "it has no OAuth server: pass WithOAuth"),
		Entry("an option for Handler only", func(e *embedding) {
			e.options = append(e.options, bootstrap.WithIPExtractor(bootstrap.BehindProxies(nil)))
		}, "WithIPExtractor is for Handler: set e.IPExtractor"),
		Entry("no MCP server", func(e *embedding) { e.tools = nil }, "the MCP server is nil: make one"),
		Entry("an unknown resource", func(e *embedding) {
			e.options = append(e.options, bootstrap.WithResource(issuer+"/other"))
		}, "not a resource of the oauth.Config: choose one of", issuer+"/more"),
		Entry("a scope of a tool that no client can request", func(e *embedding) {
			e.options = append(e.options, wantsScope("mcp:write"))
		},
			`wants mcp:write for the tool "write"`, "add it to Scopes of the oauth.Config"),
		Entry("the same with a policy that hides the tool", func(e *embedding) {
			e.options = append(e.options, wantsScope("mcp:write"),
				bootstrap.WithToolPolicy(func(oauth.Caller, string) bool {
					return false
				}))
		}, `wants mcp:write for the tool "write"`),
		Entry("a route of the site at the MCP endpoint", func(e *embedding) {
			e.site.POST("/mcp", answerTo("mine"))
		}, "the site's route POST /mcp would be hidden: move it, or choose another Resource"),
		Entry("routes of the site at the OAuth endpoints", func(e *embedding) {
			e.site.Match([]string{http.MethodGet, http.MethodPost}, "/oauth/authorize", answerTo("mine"))
		}, "the site's route GET, POST /oauth/authorize would be hidden"),
		Entry("a second registration", func(e *embedding) {
			e.register = func(server *bootstrap.MCPServer) error {
				Expect(server.Register(e.site)).To(Succeed())
				return server.Register(e.site)
			}
		}, "this MCPServer is registered already: leave out the second"),
		Entry("a handler of a registered server", func(e *embedding) {
			e.register = func(server *bootstrap.MCPServer) error {
				Expect(server.Register(e.site)).To(Succeed())
				_, err := server.Handler()
				return err
			}
		}, "this MCPServer is registered already"),
		Entry("two servers for one resource", func(e *embedding) {
			e.register = func(server *bootstrap.MCPServer) error {
				Expect(server.Register(e.site)).To(Succeed())
				return bootstrap.Guard(func(http.ResponseWriter, *http.Request, oauth.Caller) {}, e.options...).
					Register(e.site)
			}
		}, "the resource "+issuer+"/mcp has an MCP server on this Echo already", "name it with WithResource"),
	)

	It("is told all mistakes of a registration at once, and nothing is mounted", func() {
		e := newEmbedding()
		e.options = []bootstrap.MCPOption{nil, wantsScope("mcp:write"),
			bootstrap.WithAllowedOrigins("https://cms.example/path")}
		e.site.POST("/mcp", answerTo("mine"))
		e.site.GET("/.well-known/oauth-protected-resource", answerTo("mine"))
		Expect(e.run()).
			To(hasParts("option 1 is nil", "mcp:write", "cms.example/path", "POST /mcp would be hidden",
				"GET /.well-known/oauth-protected-resource would be hidden"))
		Expect(e.site.Routes()).To(HaveLen(2))
	})

	It("is told the other mistakes beside an unknown resource, but none of the first resource", func() {
		e := newEmbedding()
		e.options = []bootstrap.MCPOption{wantsScope("mcp:write"), bootstrap.WithResource(issuer + "/other")}
		e.site.POST("/oauth/token", answerTo("mine"))
		e.site.POST("/mcp", answerTo("mine"))
		err := e.run()
		Expect(err).To(hasParts("not a resource of the oauth.Config", "mcp:write", "POST /oauth/token would be hidden"))
		Expect(err).NotTo(MatchError(ContainSubstring("POST /mcp")))
	})

	It("is told all mistakes of the OAuth server at once", func() {
		e := newEmbedding()
		e.config.Issuer, e.config.Verifier, e.store, e.oauthOptions = "", (*missing)(nil), (*persistence.Store)(nil),
			[]bootstrap.OAuthOption{nil}
		Expect(e.run()).To(hasParts("Issuer is empty", "Verifier is a nil", "the store is nil", "option 1 is nil"))
	})

	It("is told a nil option of a gateway", func() {
		e := newEmbedding()
		authz, err := bootstrap.NewOAuthServer(e.config, e.store)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(authz.Close)
		_, err = bootstrap.NewGateway(bootstrap.Upstream{URL: "ftp://x"}, bootstrap.GatewayConfig{},
			bootstrap.WithOAuth(authz), nil)
		Expect(err).To(hasParts("option 2 is nil", "HostTokenInUse"))
	})

	It("can register a second server for another resource, and a server whose middleware refuses to list tools",
		func() {
			e := newEmbedding()
			e.tools.AddReceivingMiddleware(func(mcp.MethodHandler) mcp.MethodHandler {
				return func(_ context.Context, _ string, req mcp.Request) (mcp.Result, error) {
					panic(req.GetExtra().Header) // there is none without HTTP
				}
			})
			e.options = []bootstrap.MCPOption{wantsScope("mcp:write")}
			e.register = func(server *bootstrap.MCPServer) error {
				Expect(server.Register(e.site)).To(Succeed())
				second := mcp.NewServer(&mcp.Implementation{Name: "more", Version: "1"}, nil)
				return bootstrap.NewMCPServer(second, append(e.options, bootstrap.WithResource(issuer+"/more"))...).
					Register(e.site)
			}
			Expect(e.run()).To(Succeed())
		})
})
