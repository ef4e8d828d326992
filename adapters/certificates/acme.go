package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// LetsEncrypt is the directory of the authority that most people use.
const LetsEncrypt = autocert.DefaultACMEDirectory

// orderLimit is how long one request to the authority may take.
const orderLimit = 30 * time.Second

// Authority is an ACME certificate authority (RFC 8555), whose terms are taken as accepted.
type Authority struct {
	Directory string         // its URL
	Domains   []string       // to get certificates for; nothing else is ever asked for
	Email     string         // where it may write about problems; may be empty
	Cache     string         // folder of the account and the certificates, made for its owner only
	Roots     *x509.CertPool // that vouch for the authority itself; nil: the system's
}

// TLS gets a certificate when its domain is first asked for and renews it ahead of time. The authority has to reach this server on
// port 443 of each domain (TLS-ALPN-01, RFC 8737).
func (a Authority) TLS() *tls.Config {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.Roots}
	manager := &autocert.Manager{
		Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(a.Domains...), Email: a.Email, Cache: autocert.DirCache(a.Cache),
		Client: &acme.Client{DirectoryURL: a.Directory, UserAgent: "pasteport", HTTPClient: &http.Client{Transport: transport, Timeout: orderLimit}},
	}
	config := manager.TLSConfig()
	config.MinVersion = tls.VersionTLS12
	return config
}
