package pasteporttest

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// redirectURI is the client's redirect URI. The simulated browser reads the redirect and does not follow it.
const redirectURI = "http://127.0.0.1/callback"

// publishedClient is an MCP client with its metadata document, served over TLS.
type publishedClient struct {
	server  *httptest.Server
	fetches atomic.Int64
}

func publishClient(t testing.TB) *publishedClient {
	c := new(publishedClient)
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(c.document))
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0) // TryConnect reports a site that does not trust the certificate
	c.server.StartTLS()
	t.Cleanup(c.server.Close)
	return c
}

func (c *publishedClient) id() string { return c.server.URL + "/client.json" }

// host returns the host of the client_id without its port, which is the argument of AllowClient.
func (c *publishedClient) host() string {
	address := c.server.Listener.Addr().String()
	return address[:strings.LastIndexByte(address, ':')]
}

func (c *publishedClient) rootCAs() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(c.server.Certificate())
	return roots
}

func (c *publishedClient) document(w http.ResponseWriter, _ *http.Request) {
	c.fetches.Add(1)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"client_id": c.id(), "client_name": "pasteporttest", "redirect_uris": []string{redirectURI},
		"grant_types": []string{"authorization_code", "refresh_token"}, "token_endpoint_auth_method": "none",
	})
}
