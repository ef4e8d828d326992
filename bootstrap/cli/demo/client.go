package demo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/pasteport/pasteport/adapters/certificates"
)

const (
	clientName   = "Pasteport demo client"
	documentPath = "/client.json"
	callbackPath = "/callback"
	startPath    = "/start"
)

// demoClient is the client's side: a site that publishes the metadata document over TLS, and a
// loopback listener for redirects.
type demoClient struct {
	id, redirect string
	site, home   net.Listener
	roots        *x509.CertPool
	fetches      atomic.Int64
	visits       chan visit
	// The authorization URL to which the short address redirects; nil while there is none.
	invitation atomic.Pointer[string]
}

// visit is a browser that was redirected to the client and waits for a page.
type visit struct {
	answer  url.Values
	verdict chan verdict
}

// agentTransport sets the User-Agent of every request, so that the trace distinguishes connections.
type agentTransport struct {
	agent   string
	network http.RoundTripper
}

func (t agentTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", t.agent)
	return t.network.RoundTrip(request)
}

func openDemoClient() (*demoClient, error) {
	certificate, err := certificates.SelfSigned(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return nil, fmt.Errorf("making the client's certificate: %w", err)
	}
	site, siteErr := net.Listen("tcp", "127.0.0.1:0")
	home, homeErr := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(siteErr, homeErr); err != nil {
		return nil, fmt.Errorf("starting the client: %w: the demo needs the loopback network 127.0.0.1", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Leaf)
	return &demoClient{
		id:       "https://" + site.Addr().String() + documentPath,
		redirect: "http://" + home.Addr().String() + callbackPath,
		site: tls.NewListener(site,
			&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}),
		home:   home,
		roots:  roots,
		visits: make(chan visit),
	}, nil
}

func (c *demoClient) close() {
	_ = c.site.Close()
	_ = c.home.Close()
}

// document publishes the client's metadata. Its redirect URIs fit any port, because they are
// loopback.
func (c *demoClient) document() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+documentPath, func(w http.ResponseWriter, _ *http.Request) {
		c.fetches.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id":   c.id,
			"client_name": clientName,
			"redirect_uris": []string{"http://127.0.0.1" + callbackPath,
				"http://localhost" + callbackPath},
			"grant_types":                []string{"authorization_code", "refresh_token"},
			"token_endpoint_auth_method": "none",
		})
	})
	return mux
}

// start is the short address of the newest authorization URL.
func (c *demoClient) start() string { return "http://" + c.home.Addr().String() + startPath }

func (c *demoClient) redirectToInvitation(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	address := c.invitation.Load()
	if address == nil {
		http.Error(w, "The client is not waiting for an approval. The terminal tells what to do next.",
			http.StatusNotFound)
		return
	}
	http.Redirect(w, r, *address, http.StatusFound)
}

// callback passes each redirected browser to await, until ctx ends.
func (c *demoClient) callback(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+startPath, c.redirectToInvitation)
	mux.HandleFunc("GET "+callbackPath, func(w http.ResponseWriter, r *http.Request) {
		v := visit{r.URL.Query(), make(chan verdict, 1)}
		select {
		case <-ctx.Done():
		case c.visits <- v:
			(<-v.verdict).show(w, r)
		}
	})
	return mux
}
