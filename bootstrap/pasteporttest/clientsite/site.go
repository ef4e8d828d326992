// Package clientsite publishes the metadata document of an MCP client on loopback. Publish opens a
// Site. A server needs Site.RootCAs to read the document over TLS.
package clientsite

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// RedirectURI is the client's redirect URI. A loopback URI without a port stands for every port.
const RedirectURI = "http://127.0.0.1/callback"

// Site is the host of a client's metadata document.
type Site struct {
	server  *httptest.Server
	fetches atomic.Int64
}

// Publish publishes the document of a client with this name until Close.
func Publish(name string) *Site {
	s := &Site{}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.fetches.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id":                  s.ID(),
			"client_name":                name,
			"redirect_uris":              []string{RedirectURI},
			"grant_types":                []string{"authorization_code", "refresh_token"},
			"token_endpoint_auth_method": "none",
		})
	}))
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0) // a reader that does not trust the certificate says so itself
	s.server.StartTLS()
	return s
}

// Close ends the server.
func (s *Site) Close() { s.server.Close() }

// ID returns the client_id, which is the URL of the document.
func (s *Site) ID() string { return s.server.URL + "/client.json" }

// Host returns the host of the client_id without its port.
func (s *Site) Host() string { return s.server.Listener.Addr().(*net.TCPAddr).IP.String() }

// Fetched reports whether anybody has read the document.
func (s *Site) Fetched() bool { return s.fetches.Load() > 0 }

// RootCAs returns a pool with the certificate of the host.
func (s *Site) RootCAs() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.server.Certificate())
	return roots
}
