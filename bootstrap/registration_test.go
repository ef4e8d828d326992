package bootstrap_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/diagnosis"
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
		Entry("a scope of a tool that no client can request", func(e *embedding) {
			e.options = append(e.options, wantsScope("mcp:write"))
		},
			`wants mcp:write for the tool "write"`, "add it to Scopes of the oauth.Config"),
		Entry("a route of the site at the MCP endpoint", func(e *embedding) {
			e.site.POST("/mcp", answerTo("mine"))
		}, "the site's route POST /mcp would be hidden: move it, or choose another Resource"),
		Entry("a second registration", func(e *embedding) {
			e.register = func(server *bootstrap.MCPServer) error {
				Expect(server.Register(e.site)).To(Succeed())
				return server.Register(e.site)
			}
		}, "this MCPServer is registered already: leave out the second"),
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

	It("is told a nil option of a probe", func() {
		_, err := bootstrap.NewClientProbe(oauth.Config{}, nil)
		Expect(err).To(MatchError("option 1 is nil: leave it out"))
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

var _ = Describe("A site with its own page at /register", Label("T3", "F4"), func() {
	answered := func(text string) echo.HandlerFunc {
		return func(c echo.Context) error { return c.String(http.StatusOK, text) }
	}
	register := func(ctx context.Context, config oauth.Config, routes func(*echo.Echo)) (status int, text string,
		connections []diagnosis.Attempt) {
		config.Issuer, config.VerifyBearer, config.Logger = issuer, func(string) bool {
			return true
		}, slog.New(slog.DiscardHandler)
		authz, err := bootstrap.NewOAuthServer(config, openStore())
		Expect(err).NotTo(HaveOccurred())
		e := echo.New()
		routes(e)
		server := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil),
			bootstrap.WithOAuth(authz))
		Expect(server.Register(e)).To(Succeed())
		w := (&host{Echo: e, issuer: issuer, authz: authz}).post("/register", url.Values{})
		authz.Close() // writes the steps
		connections, err = authz.Trace(ctx)
		Expect(err).NotTo(HaveOccurred())
		return w.Code, w.Body.String(), connections
	}

	DescribeTable("answers there as without Pasteport", func(ctx SpecContext, routes func(*echo.Echo), text string) {
		status, body, connections := register(ctx, oauth.Config{}, routes)
		Expect(status).To(Equal(http.StatusOK))
		Expect(body).To(Equal(text))
		Expect(connections).To(BeEmpty())
	},
		Entry("by a route with a parameter", func(e *echo.Echo) { e.POST("/:page", answered("page")) }, "page"),
	)

	It("has the attempt of a client in the trace when it answers 404 itself", func(ctx SpecContext) {
		status, body, connections := register(ctx, oauth.Config{}, func(e *echo.Echo) {
			e.HTTPErrorHandler = func(_ error, c echo.Context) {
				_ = c.String(http.StatusNotFound, "no such page here")
			}
		})
		Expect(status).To(Equal(http.StatusNotFound))
		Expect(body).To(Equal("no such page here"))
		Expect(connections).To(ConsistOf(HaveField("Verdict", ContainSubstring("has to register itself"))))
	})
})

var _ = Describe("Opening a gateway in a host", Label("U6", "F9"), func() {
	const url = "http://127.0.0.1:9000/mcp"
	to := bootstrap.Upstream{URL: url}
	open := func(inUse bool, to bootstrap.Upstream, config bootstrap.GatewayConfig) error {
		host := openHost(oauth.Config{Issuer: "https://cms.example", HostTokenInUse: inUse}, openStore(), nil)
		_, err := bootstrap.NewGateway(to, config, bootstrap.WithOAuth(host.authz))
		return err
	}

	It("needs an OAuth server whose access tokens can open the host token, and an upstream", func() {
		Expect(open(true, to, bootstrap.GatewayConfig{})).To(Succeed())
		Expect(open(false, to, bootstrap.GatewayConfig{Credential: bootstrap.CredentialNone})).To(Succeed())
		Expect(open(false, to, bootstrap.GatewayConfig{})).To(MatchError(ContainSubstring("set HostTokenInUse")))
		Expect(open(true, bootstrap.Upstream{}, bootstrap.GatewayConfig{})).
			To(MatchError(ContainSubstring("it is not a URL")))
		Expect(open(true, to, bootstrap.GatewayConfig{Credential: "basic"})).
			To(MatchError(ContainSubstring("choose one of")))
		_, err := bootstrap.NewGateway(to, bootstrap.GatewayConfig{})
		Expect(err).To(MatchError(ContainSubstring("pass WithOAuth to NewGateway")))
	})

	It("names the fields of the struct, not of the service", func() {
		err := open(true, to, bootstrap.GatewayConfig{
			Host:     "http://localhost",
			Headers:  []string{"Cookie"},
			Patience: time.Millisecond,
			Present:  []string{"X-Key: {nothing}"},
		})
		Expect(err).To(MatchError(And(MatchRegexp(`(?m)(^|: )Patience is 1ms`), MatchRegexp(`(?m)^Host has`),
			MatchRegexp(`(?m)^Headers has`), MatchRegexp(`(?m)(^|: )Present: `), Not(ContainSubstring("Gateway.")))))
		err = open(true, bootstrap.Upstream{Command: "sh", Env: map[string]string{"K": "{token}"}},
			bootstrap.GatewayConfig{MaxProcesses: -1})
		Expect(err).To(MatchError(HaveSuffix(": MaxProcesses is -1: choose 1 or more")))
	})
})

// siteBehindProxy is an Echo that trusts the addresses in headers of a proxy on loopback.
func siteBehindProxy(config oauth.Config) *echo.Echo {
	GinkgoHelper()
	store, err := persistence.OpenSQLite(filepath.Join(GinkgoT().TempDir(), "oauth.db"))
	Expect(err).NotTo(HaveOccurred())
	config.VerifyBearer, config.Logger = func(string) bool { return true }, slog.New(slog.DiscardHandler)
	authz, err := bootstrap.NewOAuthServer(config, store)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		authz.Close()
		Expect(store.Close()).To(Succeed())
	})
	e := echo.New()
	e.IPExtractor = echo.ExtractIPFromXFFHeader()
	e.Any("/*", func(c echo.Context) error { return c.String(http.StatusOK, "the site's own page") })
	server := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil),
		bootstrap.WithOAuth(authz))
	Expect(server.Register(e)).To(Succeed())
	return e
}

func answer(e *echo.Echo, r *http.Request) *httptest.ResponseRecorder {
	r.RemoteAddr = "127.0.0.1:5555"
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

var _ = Describe("A site behind a proxy", func() {
	DescribeTable("answers discovery requests before a catch-all route of the site",
		Label("F1", "F5", "F6"), func(path string, status int) {
			e := siteBehindProxy(oauth.Config{Issuer: "https://cms.example/cms"})
			w := answer(e, httptest.NewRequest(http.MethodGet, "https://cms.example"+path, http.NoBody))
			Expect(w.Code).To(Equal(status), path)
			Expect(w.Body.String()).NotTo(ContainSubstring("the site's own page"))
			if status == http.StatusOK {
				Expect(w.Body.String()).To(ContainSubstring(`"https://cms.example/cms`))
			}
		},
		Entry(nil, "/.well-known/oauth-authorization-server/cms", http.StatusOK),
		Entry(nil, "/.well-known/oauth-protected-resource/cms/mcp", http.StatusOK),
		Entry(nil, "/.well-known/openid-configuration/cms/mcp", http.StatusNotFound),
		Entry(nil, "/cms/mcp", http.StatusUnauthorized),
	)
})
