package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// LetsEncrypt is the directory URL of Let's Encrypt.
const LetsEncrypt = autocert.DefaultACMEDirectory

const requestTimeout = 30 * time.Second // of one request to the authority

// Authority is an ACME certificate authority (RFC 8555). Its terms of service are accepted
// automatically.
type Authority struct {
	Directory string         // URL
	Domains   []string       // the only names that get certificates
	Email     string         // for notices of the authority; may be empty
	Cache     string         // folder of the account and the certificates, with access for its owner only
	Roots     *x509.CertPool // of the authority's own server; nil uses the system's
}

// TLS obtains a certificate at the first handshake for its domain and renews it before it expires.
// The authority must reach this server on port 443 of each domain (TLS-ALPN-01, RFC 8737).
func (a Authority) TLS() *tls.Config {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.Roots}
	manager := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		HostPolicy: autocert.HostWhitelist(a.Domains...),
		Email:      a.Email,
		Cache:      autocert.DirCache(a.Cache),
		Client: &acme.Client{DirectoryURL: a.Directory, UserAgent: "pasteport",
			HTTPClient: &http.Client{Transport: transport, Timeout: requestTimeout}},
	}
	config := manager.TLSConfig()
	config.MinVersion = tls.VersionTLS12
	return config
}
