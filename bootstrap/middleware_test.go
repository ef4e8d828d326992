package bootstrap_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

// usualMiddleware is what many sites have for all their pages.
func usualMiddleware(skip middleware.Skipper) []echo.MiddlewareFunc {
	return []echo.MiddlewareFunc{
		middleware.Recover(), middleware.RequestID(), middleware.Secure(), middleware.BodyLimit("4M"),
		middleware.CSRFWithConfig(middleware.CSRFConfig{Skipper: skip}),
		middleware.CORSWithConfig(
			middleware.CORSConfig{Skipper: skip, AllowOrigins: []string{"https://www.example.com"}}),
		middleware.GzipWithConfig(middleware.GzipConfig{Skipper: skip}),
		middleware.DecompressWithConfig(middleware.DecompressConfig{Skipper: skip}),
		middleware.ContextTimeoutWithConfig(middleware.ContextTimeoutConfig{Skipper: skip, Timeout: time.Minute}),
		middleware.BodyDumpWithConfig(middleware.BodyDumpConfig{Skipper: skip,
			Handler: func(echo.Context, []byte, []byte) {}}),
	}
}

var _ = Describe("A site with the usual middleware for all pages", Label("F15"), func() {
	var (
		site  *pasteporttest.Site
		authz *bootstrap.OAuthServer
		e     *echo.Echo
	)
	BeforeEach(func() {
		site = pasteporttest.New(GinkgoTB())
		var err error
		authz, err = bootstrap.NewOAuthServer(site.Config(oauth.Config{VerifyBearer: func(token string) bool {
			return token == hostToken
		}}), openStore(),
			bootstrap.WithRootCAs(site.RootCAs()))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(authz.Close)
		e = echo.New()
		e.POST("/settings", answerTo("saved"))
		e.POST("/oauth/link", answerTo("linked"))
		e.POST("/mcp/admin", answerTo("done"))
		e.PUT("/mcp", answerTo("put"))
		e.POST("/:page", answerTo("a page"))
	})
	register := func() {
		GinkgoHelper()
		tools := mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil)
		mcp.AddTool(tools, &mcp.Tool{Name: "greet"}, greet)
		Expect(bootstrap.NewMCPServer(tools, bootstrap.WithOAuth(authz)).Register(e)).To(Succeed())
	}

	It("lets a client connect, call and stream with the Skipper", func(ctx SpecContext) {
		//nolint:staticcheck // sites still use it
		timeout := middleware.TimeoutWithConfig(middleware.TimeoutConfig{Skipper: authz.Skipper, Timeout: time.Minute})
		e.Use(append(usualMiddleware(authz.Skipper), timeout)...)
		register()
		site.Serve(e)
		ada := site.Connect(hostToken)
		result, err := ada.Session().CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: greeting{"Ada"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Content).To(ConsistOf(HaveField("Text", "Hello Ada")))
		ada.Refresh()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, site.URL()+"/mcp", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Accept", "text/event-stream")
		stream, err := ada.Client().Do(r)
		Expect(err).NotTo(HaveOccurred(), "the headers come before the stream ends")
		Expect(stream.StatusCode).To(Equal(http.StatusOK))
		Expect(stream.Body.Close()).To(Succeed())
	}, SpecTimeout(20*time.Second))

	const csrf = "missing csrf token"
	DescribeTable("keeps the protection of its own routes:", func(method, path, text string) {
		e.Use(usualMiddleware(authz.Skipper)...)
		register()
		w := answer(e, httptest.NewRequest(method, path, strings.NewReader(url.Values{"a": {"b"}}.Encode())))
		Expect(w.Code).To(Equal(http.StatusBadRequest))
		Expect(w.Body.String()).To(ContainSubstring(text))
	},
		Entry("a form", http.MethodPost, "/settings", csrf),
		Entry("a page beside ours", http.MethodPost, "/oauth/link", csrf),
		Entry("another method at the MCP endpoint", http.MethodPut, "/mcp", csrf),
		Entry("a page whose encoded path looks like ours", http.MethodPost, "/oauth%2Ftoken", csrf),
		Entry("and ours are spared", http.MethodPost, "/oauth/token", `"error":"invalid_request"`),
	)

	It("answers preflights of our endpoints as without the middleware", Label("G2"), func() {
		e.Use(usualMiddleware(authz.Skipper)...)
		register()
		r := httptest.NewRequest(http.MethodOptions, "/.well-known/oauth-protected-resource/mcp", http.NoBody)
		r.Header.Set("Origin", "https://inspector.example")
		r.Header.Set("Access-Control-Request-Method", "GET")
		Expect(answer(e, r).Header().Values("Access-Control-Allow-Origin")).To(Equal([]string{"*"}))
	})
})
