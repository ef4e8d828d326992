package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
)

const documentPath = "/client.json"

// clientSite serves the metadata document of the suite's client over TLS, with a certificate of the
// authority in the file.
type clientSite struct {
	*httptest.Server
	authority string // PEM file
}

func openClientSite(redirectURI, dir string) (*clientSite, error) {
	site := &clientSite{authority: filepath.Join(dir, "authority.pem")}
	site.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != documentPath {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id":                  site.id(),
			"client_name":                "MCP conformance suite",
			"redirect_uris":              []string{redirectURI},
			"grant_types":                []string{"authorization_code"},
			"response_types":             []string{"code"},
			"token_endpoint_auth_method": "none",
		})
	}))
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw})
	if err := os.WriteFile(site.authority, certificate, 0o600); err != nil {
		site.Close()
		return nil, fmt.Errorf("writing the certificate: %w", err)
	}
	return site, nil
}

// id returns the client_id: the URL of the document.
func (s *clientSite) id() string { return s.URL + documentPath }
