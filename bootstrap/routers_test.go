package bootstrap_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/pasteporttest"
	"github.com/pasteport/pasteport/domain/oauth"
)

// embedded starts the OAuth server and the MCP server of a site under test.
func embedded(site *pasteporttest.Site, config oauth.Config, options ...bootstrap.MCPOption) (*bootstrap.OAuthServer,
	*bootstrap.MCPServer) {
	GinkgoHelper()
	config.VerifyBearer = func(token string) bool { return token == hostToken }
	authz, err := bootstrap.NewOAuthServer(site.Config(config), openStore(), bootstrap.WithRootCAs(site.RootCAs()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(authz.Close)
	tools := mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "greet"}, greet)
	return authz, bootstrap.NewMCPServer(tools, append(options, bootstrap.WithOAuth(authz))...)
}

func handlerOf(server *bootstrap.MCPServer) http.Handler {
	GinkgoHelper()
	handler, err := server.Handler()
	Expect(err).NotTo(HaveOccurred())
	return handler
}

var _ = Describe("A site that embeds in its own router", Label("F16"), func() {
	DescribeTable("lets a client connect, call, listen and refresh with",
		func(ctx SpecContext, mount func(*bootstrap.OAuthServer, *bootstrap.MCPServer) http.Handler) {
			site := pasteporttest.New(GinkgoTB())
			authz, server := embedded(site, oauth.Config{})
			router := mount(authz, server)
			site.Serve(router)
			ada := site.Connect(hostToken)
			result, err := ada.Session().CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: greeting{"Ada"}})
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Content).To(ConsistOf(HaveField("Text", "Hello Ada")))
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, site.URL()+"/mcp", http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("Accept", "text/event-stream")
			stream, err := ada.Client().Do(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(stream.StatusCode).To(Equal(http.StatusOK))
			Expect(stream.Body.Close()).To(Succeed())
			ada.Refresh()
			for path, status := range map[string]int{"/about": http.StatusOK, "/no-such-page": http.StatusNotFound,
				"/mcp/more": http.StatusNotFound} {
				w := httptest.NewRecorder()
				router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
				Expect(w.Code).To(Equal(status), path)
			}
		},
		Entry("net/http, path by path",
			SpecTimeout(20*time.Second), func(_ *bootstrap.OAuthServer, server *bootstrap.MCPServer) http.Handler {
				mux, endpoints := http.NewServeMux(), handlerOf(server)
				mux.HandleFunc("GET /about", about)
				for _, path := range []string{
					"/mcp", "/mcp/", "/oauth/", "/.well-known/oauth-authorization-server",
					"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/",
				} {
					mux.Handle(path, endpoints)
				}
				return mux
			}),
		Entry("chi and its middleware",
			SpecTimeout(20*time.Second), func(authz *bootstrap.OAuthServer, server *bootstrap.MCPServer) http.Handler {
				router := chi.NewRouter()
				router.Use(middleware.RequestID, middleware.Recoverer, sparing(authz, middleware.Compress(5)),
					sparing(authz, middleware.Timeout(time.Minute)))
				router.Get("/about", about)
				router.NotFound(handlerOf(server).ServeHTTP)
				return router
			}),
	)

	DescribeTable("counts unknown tokens by the address of",
		Label("D31"), func(other int, options ...bootstrap.MCPOption) {
			_, server := embedded(pasteporttest.New(GinkgoTB()), oauth.Config{}, options...)
			endpoints := handlerOf(server)
			exchange := func(forwardedFor string) int {
				form := url.Values{"grant_type": {"refresh_token"}, "client_id": {clientID},
					"refresh_token": {"ppr_" + strings.Repeat("a", 43)}}
				r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(form.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("X-Forwarded-For", forwardedFor)
				r.RemoteAddr = "203.0.113.1:1234"
				w := httptest.NewRecorder()
				endpoints.ServeHTTP(w, r)
				return w.Code
			}
			for range 60 {
				Expect(exchange("198.51.100.7")).To(Equal(http.StatusBadRequest))
			}
			Expect(exchange("198.51.100.7")).To(Equal(http.StatusTooManyRequests))
			Expect(exchange("198.51.100.8")).To(Equal(other))
		},
		Entry("the peer", http.StatusTooManyRequests),
		Entry("WithIPExtractor", http.StatusBadRequest,
			bootstrap.WithIPExtractor(bootstrap.BehindProxies(nil, netip.MustParsePrefix("203.0.113.0/24")))),
	)

	It("gets no handler for a mistake", Label("F14"), func() {
		handler, err := bootstrap.NewMCPServer(nil).Handler()
		Expect(handler).To(BeNil())
		Expect(err).To(hasParts("the MCP server is nil", "pass WithOAuth"))
	})
})

// sparing is a middleware for all requests but those of the OAuth server.
func sparing(authz *bootstrap.OAuthServer, middleware func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		wrapped := middleware(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if authz.Serves(r) {
				next.ServeHTTP(w, r)
				return
			}
			wrapped.ServeHTTP(w, r)
		})
	}
}
