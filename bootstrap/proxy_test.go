package bootstrap_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

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
	It("has no limit for the address of the proxy, which all people share", Label("D31"), func() {
		e := siteBehindProxy(oauth.Config{Issuer: "https://cms.example"})
		form := url.Values{"grant_type": {"refresh_token"}, "client_id": {clientID}, "refresh_token": {"unknown"}}
		for range 70 {
			r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			Expect(answer(e, r).Code).To(Equal(http.StatusBadRequest))
		}
	})

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
		Entry(nil, "/cms/.well-known/oauth-authorization-server", http.StatusOK),
		Entry(nil, "/.well-known/oauth-protected-resource/cms/mcp", http.StatusOK),
		Entry(nil, "/.well-known/oauth-protected-resource", http.StatusOK),
		Entry(nil, "/.well-known/openid-configuration/cms/mcp", http.StatusNotFound),
		Entry(nil, "/.well-known/openid-configuration/cms", http.StatusNotFound),
		Entry(nil, "/cms/.well-known/openid-configuration", http.StatusNotFound),
		Entry(nil, "/cms/mcp", http.StatusUnauthorized),
	)
})
