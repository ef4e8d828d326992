//go:build unix

package bootstrap_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/audit"
	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	domain "github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
)

// BenchmarkAuditedCall measures what the audit adds to a guarded tools/call without a network.
// Compare cpu-us/op, because other processes change ns/op.
func BenchmarkAuditedCall(b *testing.B) {
	for _, variant := range []string{"none", "recorder", "file"} {
		b.Run(variant, func(b *testing.B) {
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
			options := []bootstrap.MCPOption{bootstrap.WithOAuth(authz)}
			switch variant {
			case "recorder":
				options = append(options, bootstrap.WithAudit(func(context.Context, domain.Call) {}))
			case "file":
				file, err := audit.Open(audit.Options{Path: filepath.Join(b.TempDir(), "calls.jsonl")})
				Expect(err).NotTo(HaveOccurred())
				defer file.Close()
				options = append(options, bootstrap.WithAudit(file.Record))
			}
			site := &host{Echo: echo.New(), issuer: issuer, authz: authz}
			Expect(bootstrap.Guard(pong, options...).Register(site.Echo)).To(Succeed())
			callTool(b, site, tokensOf(site.exchange(site.code())).Access)
		})
	}
}

func callTool(b *testing.B, site http.Handler, access string) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_article","arguments":{` +
		`"slug":"spring","limit":10}}}`
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, issuer+"/mcp", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr, r.ContentLength = "192.0.2.1:4711", int64(len(body))
	before := cpuTime(b)
	for b.Loop() {
		r.Header = http.Header{"Authorization": {"Bearer " + access}, "Content-Type": {"application/json"},
			"Accept": {"application/json"}}
		r.Body = io.NopCloser(strings.NewReader(body))
		site.ServeHTTP(unread{http.Header{}}, r)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-us/op")
}

// cpuTime returns the processor time of this process in microseconds.
func cpuTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return (used.Utime.Nano() + used.Stime.Nano()) / 1000
}
