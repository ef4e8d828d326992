package bootstrap_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// unread is an http.ResponseWriter that discards the response and supports deadlines.
type unread struct{ header http.Header }

func (u unread) Header() http.Header            { return u.header }
func (unread) Write(p []byte) (int, error)      { return len(p), nil }
func (unread) WriteHeader(int)                  {}
func (unread) SetReadDeadline(time.Time) error  { return nil }
func (unread) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkBareCall measures the minimum work of a call without a guard.
func BenchmarkBareCall(b *testing.B) {
	site := echo.New()
	site.POST("/mcp", func(c echo.Context) error {
		pong(c.Response(), c.Request(), oauth.Caller{})
		return nil
	})
	callEach(b, site, "")
}

// BenchmarkGuardedCall measures a guarded call without a network.
func BenchmarkGuardedCall(b *testing.B) {
	RegisterTestingT(b)
	store, err := persistence.OpenSQLite(filepath.Join(b.TempDir(), "oauth.db"))
	Expect(err).NotTo(HaveOccurred())
	defer store.Close()
	authz, err := bootstrap.NewOAuthServer(oauth.Config{Issuer: issuer, VerifyBearer: func(string) bool {
		return true
	}}, store,
		bootstrap.WithClientDirectory(published{}))
	Expect(err).NotTo(HaveOccurred())
	defer authz.Close()
	site := &host{Echo: echo.New(), issuer: issuer, authz: authz}
	Expect(bootstrap.Guard(pong, bootstrap.WithOAuth(authz)).Register(site.Echo)).To(Succeed())
	callEach(b, site, tokensOf(site.exchange(site.code())).Access)
}

const issuer = "https://cms.example"

func pong(w http.ResponseWriter, r *http.Request, _ oauth.Caller) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

func callEach(b *testing.B, site http.Handler, access string) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, issuer+"/mcp", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr, r.ContentLength = "192.0.2.1:4711", int64(len(ping))
	for b.Loop() {
		r.Header = http.Header{"Authorization": {"Bearer " + access}, "Content-Type": {"application/json"},
			"Accept": {"application/json"}}
		r.Body = io.NopCloser(strings.NewReader(ping))
		site.ServeHTTP(unread{http.Header{}}, r)
	}
}
