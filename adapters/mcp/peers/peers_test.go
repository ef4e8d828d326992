package peers

import (
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/features/suite"
)

var _ = Describe("Passing a request on over TLS", Label("R1"), func() {
	DescribeTable("needs a certificate for the host of the MCP server, whatever the address is:",
		func(resource string, status int) {
			caller := oauth.Caller{Subject: "ada", Scopes: oauth.NewScopes("mcp")}
			options := Options{
				Resource: oauth.NewResource(resource),
				Keys:     seal.NewKeyRing(seal.FixedSecrets{make([]byte, 32)}),
				Now:      time.Now,
				Logger:   slog.New(slog.DiscardHandler),
			}
			var owner *Peers
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				pass, ok := owner.Open(r, r.Header.Get("Mcp-Session-Id"))
				Expect(ok).To(BeTrue())
				Expect(pass.Caller).To(Equal(caller))
				w.Header().Set(Header, pass.Answer)
			}))
			DeferCleanup(server.Close)
			options.Address = server.URL
			owner = New(options)
			options.Address = "https://127.0.0.1:1"
			other := New(options)
			other.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
			other.transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())

			bound, err := owner.BindSession("s", caller.SessionOwner(options.Resource))
			Expect(err).NotTo(HaveOccurred())
			to := other.Elsewhere(bound, caller)
			Expect(to).To(Equal(server.URL))
			r, answer := httptest.NewRequest(http.MethodDelete, resource, nil), httptest.NewRecorder()
			r.Header.Set("Mcp-Session-Id", bound)
			other.Forward(answer, r, nil, Pass{Caller: caller, Session: bound}, to)
			Expect(answer.Code).To(Equal(status))
			Expect(answer.Header()).NotTo(HaveKey(Header))
		},
		Entry(nil, "https://example.com/mcp", http.StatusOK), // the host in the certificate of httptest
		Entry(nil, "https://other.test/mcp", http.StatusServiceUnavailable),
	)
})

var _ = Describe("A replica that cannot be reached", Label("R4"), func() {
	var now time.Time
	var other *Peers
	var dropping *httptest.Server
	BeforeEach(func() {
		now = time.Now()
		other = New(Options{
			Address:  "http://127.0.0.1:1",
			Resource: oauth.NewResource("https://example.com/mcp"),
			Keys:     seal.NewKeyRing(seal.FixedSecrets{make([]byte, 32)}),
			Now:      func() time.Time { return now },
			Logger:   slog.New(slog.DiscardHandler),
		})
		dropping = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}))
		DeferCleanup(dropping.Close)
	})
	forward := func() int {
		r, answer := httptest.NewRequest(http.MethodPost, "https://example.com/mcp", nil), httptest.NewRecorder()
		other.Forward(answer, r, []byte("{}"), Pass{Session: "s"}, dropping.URL)
		return answer.Code
	}

	It("has lost its sessions after ten seconds of failures", func() {
		for range 2 {
			Expect(forward()).To(Equal(http.StatusServiceUnavailable))
			now = now.Add(goneAfter / 2)
		}
		Expect(forward()).To(Equal(http.StatusNotFound))
	})

	It("has not lost them for a failure long ago", func() {
		Expect(forward()).To(Equal(http.StatusServiceUnavailable))
		now = now.Add(time.Hour)
		Expect(forward()).To(Equal(http.StatusServiceUnavailable))
	})
})

func TestPeers(t *testing.T) { suite.Run(t, "Requests in sessions of other replicas") }
