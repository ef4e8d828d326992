package bootstrap_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/diagnosis"
	"github.com/pasteport/pasteport/domain/oauth"
)

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
		Entry("by its own route", func(e *echo.Echo) { e.POST("/register", answered("welcome")) }, "welcome"),
		Entry("by a route with a parameter", func(e *echo.Echo) { e.POST("/:page", answered("page")) }, "page"),
		Entry("by a catch-all route", func(e *echo.Echo) { e.Any("/*", answered("all")) }, "all"),
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

	It("has the attempt in the trace when its page takes no POST", func(ctx SpecContext) {
		status, _, connections := register(ctx, oauth.Config{}, func(e *echo.Echo) {
			e.GET("/register", answered("a form"))
		})
		Expect(status).To(Equal(http.StatusMethodNotAllowed))
		Expect(connections).To(HaveLen(1))
	})

	It("has none in the trace when clients may register themselves", func(ctx SpecContext) {
		_, _, connections := register(ctx, oauth.Config{SelfRegistration: true}, func(*echo.Echo) {})
		Expect(connections).To(BeEmpty())
	})
})
