package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
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

// SelfSigned returns a new certificate for an address, valid for a year.
func SelfSigned(address net.IP) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{address},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(encoded)
	return tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key, Leaf: leaf}, err
}
