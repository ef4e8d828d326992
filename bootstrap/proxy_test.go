package bootstrap_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
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
func siteBehindProxy(config oauth.Config, options ...bootstrap.OAuthOption) *echo.Echo {
	GinkgoHelper()
	store, err := persistence.OpenSQLite(filepath.Join(GinkgoT().TempDir(), "oauth.db"))
	Expect(err).NotTo(HaveOccurred())
	config.VerifyBearer, config.Logger = func(string) bool { return true }, slog.New(slog.DiscardHandler)
	authz, err := bootstrap.NewOAuthServer(config, store, options...)
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
	failFrom := func(e *echo.Echo, address string) *httptest.ResponseRecorder {
		form := url.Values{"grant_type": {"refresh_token"}, "client_id": {clientID}, "refresh_token": {"unknown"}}
		r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if address != "" {
			r.Header.Set("X-Forwarded-For", address)
		}
		return answer(e, r)
	}

	It("refuses an address after sixty unknown tokens in a minute, and no other", Label("D31"), func() {
		limited := 0
		e := siteBehindProxy(oauth.Config{Issuer: "https://cms.example"},
			bootstrap.WithLimitObserver(func(limit oauth.Limit, effect oauth.LimitEffect) {
				Expect(limit).To(Equal(oauth.LimitUnknownTokens))
				Expect(effect).To(Equal(oauth.LimitRefused))
				limited++
			}))
		for range 60 {
			Expect(failFrom(e, "203.0.113.7").Code).To(Equal(http.StatusBadRequest))
		}
		refused := failFrom(e, "203.0.113.7")
		Expect(refused.Code).To(Equal(http.StatusTooManyRequests))
		Expect(refused.Body.String()).To(ContainSubstring(`"error":"temporarily_unavailable"`))
		Expect(refused.Header().Get("Retry-After")).To(MatchRegexp(`^[1-9]\d?$`))
		Expect(failFrom(e, "203.0.113.8").Code).To(Equal(http.StatusBadRequest))
		Expect(limited).To(Equal(1))
	})

	It("has no limit for a network in unlimited-networks", Label("D31"), func() {
		e := siteBehindProxy(oauth.Config{
			Issuer: "https://cms.example",
			Limits: oauth.Limits{UnlimitedNetworks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}},
		})
		for range 70 {
			Expect(failFrom(e, "203.0.113.7").Code).To(Equal(http.StatusBadRequest))
		}
	})

	It("has no limit for the address of the proxy, which all people share", Label("D31"), func() {
		e := siteBehindProxy(oauth.Config{Issuer: "https://cms.example"})
		for range 70 {
			Expect(failFrom(e, "").Code).To(Equal(http.StatusBadRequest))
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

	It("lets the operator decide which clients may connect", Label("A8"), func() {
		e := siteBehindProxy(oauth.Config{Issuer: "https://cms.example", AllowClient: func(host string) bool {
			return host == "good.example"
		}})
		w := answer(e, httptest.NewRequest(http.MethodGet, "https://cms.example/oauth/authorize?client_id="+
			url.QueryEscape("https://Bad.example/c.json"), http.NoBody))
		Expect(w.Code).To(Equal(http.StatusForbidden))
		Expect(w.Body.String()).To(ContainSubstring("unauthorized_client"))
	})
})
