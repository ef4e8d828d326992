package features_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// ClientSite is the web site of an MCP client's vendor: it publishes metadata documents over TLS
// and counts requests.
type ClientSite struct {
	server    *httptest.Server
	mu        sync.Mutex
	documents map[string]http.HandlerFunc
	fetches   atomic.Int64
}

// NewClientSite starts an empty site that ends with the spec.
func NewClientSite() *ClientSite {
	s := &ClientSite{documents: map[string]http.HandlerFunc{}}
	s.server = newSiteServer(s)
	s.server.StartTLS()
	DeferCleanup(s.server.Close)
	return s
}

// newSiteServer returns a server with the certificate of all client sites, which is not started
// yet.
func newSiteServer(site http.Handler) *httptest.Server {
	GinkgoHelper()
	certificate, err := siteCertificate()
	Expect(err).NotTo(HaveOccurred())
	s := httptest.NewUnstartedServer(site)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	return s
}

// siteCertificate is elliptic, because a signature with the RSA key of httptest takes 50 times as
// long.
var siteCertificate = sync.OnceValues(func() (certificate tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
})

func (s *ClientSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.fetches.Add(1)
	s.mu.Lock()
	serve, found := s.documents[r.URL.Path]
	s.mu.Unlock()
	if !found {
		http.NotFound(w, r)
		return
	}
	serve(w, r)
}

// Roots returns a pool with the site's certificate.
func (s *ClientSite) Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.server.Certificate())
	return roots
}

// Fetches returns the number of requests so far.
func (s *ClientSite) Fetches() int64 { return s.fetches.Load() }

// URL returns the URL of path on the site.
func (s *ClientSite) URL(path string) string { return s.server.URL + path }

// Serve sets the handler of path.
func (s *ClientSite) Serve(path string, serve http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[path] = serve
}

// Publish serves the document as JSON and returns its URL, the client_id.
func (s *ClientSite) Publish(path, document string) string {
	s.Serve(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, document)
	})
	return s.URL(path)
}
