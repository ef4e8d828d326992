package bootstrap_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Warning about an http.Server without limits", Label("operations"), func() {
	DescribeTable("names the missing limits, once:", func(ctx SpecContext, bound func(*http.Server), missing string) {
		log := gbytes.NewBuffer()
		site := httptest.NewUnstartedServer(nil)
		issuer := "http://" + site.Listener.Addr().String()
		authz, err := bootstrap.NewOAuthServer(oauth.Config{
			Issuer:              issuer,
			AllowLoopbackIssuer: true,
			VerifyBearer:        func(string) bool { return true },
			Logger:              slog.New(slog.NewTextHandler(log, nil)),
		}, openStore())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(authz.Close)
		e := echo.New()
		server := bootstrap.NewMCPServer(mcp.NewServer(&mcp.Implementation{Name: "site", Version: "1"}, nil),
			bootstrap.WithOAuth(authz))
		Expect(server.Register(e)).To(Succeed())
		site.Config.Handler = e
		bound(site.Config)
		site.Start()
		DeferCleanup(site.Close)
		for range 2 {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, issuer+"/mcp", http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			answer, err := site.Client().Do(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Body.Close()).To(Succeed())
			Expect(answer.StatusCode).To(Equal(http.StatusUnauthorized))
		}
		if missing != "" {
			Expect(log).To(gbytes.Say("level=WARN .*http.Server.* missing=" + missing + " advice="))
		}
		Expect(log).NotTo(gbytes.Say("http.Server"))
	},
		Entry("all", func(*http.Server) {}, `"MaxHeaderBytes, ReadHeaderTimeout"`),
		Entry("the size of headers", func(s *http.Server) { s.ReadHeaderTimeout = time.Minute }, "MaxHeaderBytes"),
		Entry("the time for headers", func(s *http.Server) { s.MaxHeaderBytes = 32 << 10 }, "ReadHeaderTimeout"),
		Entry("none", func(s *http.Server) { s.MaxHeaderBytes, s.ReadTimeout = 32<<10, time.Minute }, ""),
	)
})
