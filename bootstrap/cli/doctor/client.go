package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// redirect is the redirect URI of the login. No server listens there: doctor acts as the browser
// and reads the code from the Location header. The document leaves the port out, as Claude Code's
// does; a server must accept any port of a loopback address (RFC 8252 §7.3).
const redirect = "http://127.0.0.1:33571/callback"

// Client is doctor's OAuth client. Its ID is the URL of its Client ID Metadata Document; "" lets
// doctor choose one.
type Client struct {
	ID string

	certificate string // file name, when ServeClient serves the document
	fetches     atomic.Int64
	server      *http.Server
}

// Document returns the metadata document to publish at id.
func Document(id string) []byte {
	document, _ := json.MarshalIndent(map[string]any{ // encoding strings cannot fail
		"client_id": id, "client_name": service.DoctorClient.Name,
		"redirect_uris":              service.DoctorClient.RedirectURIs,
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"response_types":             []string{"code"},
		"token_endpoint_auth_method": "none",
	}, "", "  ")
	return append(document, '\n')
}

// ServeClient serves the document on this computer, for a server that runs here too and trusts the
// certificate. name is the file of the certificate, for messages.
func ServeClient(certificate tls.Certificate, name string) (*Client, error) {
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, fmt.Errorf("serving the client's document: %w", err)
	}
	c := &Client{ID: "https://" + listener.Addr().String() + "/client.json", certificate: name}
	c.server = &http.Server{Handler: http.HandlerFunc(c.publish), ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = c.server.Serve(listener) }() // ends with Close
	return c, nil
}

func (c *Client) publish(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/client.json" {
		http.NotFound(w, r)
		return
	}
	c.fetches.Add(1)
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(Document(c.ID))
}

// Close stops serving the document.
func (c *Client) Close() error {
	if c.server == nil {
		return nil
	}
	return c.server.Close()
}

// document checks the client's own document.
func (e *examination) document(ctx context.Context) checkResult {
	if e.Token == "" {
		return skip("because a login needs --token")
	}
	if e.Client.ID == "" {
		return e.identify(ctx)
	}
	mend := "Host the output of `pasteport doctor --print-client-document --client-id " + e.Client.ID +
		"` at this URL, as application/json."
	if e.Client.server != nil {
		return ok("served from this computer: %s", e.Client.ID)
	}
	d, v := e.wire.document(ctx, e.Client.ID)
	switch {
	case v.status != OK:
		return fail(mend, "%s", v.seen)
	case d.text("client_id") != e.Client.ID:
		return fail(mend, "its client_id is %q", d.text("client_id"))
	case d.mediaType() != jsonType:
		return fail(mend, "it is served as %q", d.header.Get("Content-Type"))
	}
	return ok("%s", e.Client.ID)
}
