// Package certificates provides the TLS configuration of a server whose certificate changes while
// it runs: Files reads it from two PEM files, Authority obtains it from an ACME certificate
// authority.
package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	reloadInterval = time.Second         // at least, between two reads of the files
	warnBefore     = 14 * 24 * time.Hour // before the expiry; a fifth of the lifetime if that is shorter
	warnInterval   = 24 * time.Hour
)

// Files is a certificate in two PEM files. It reloads changed files during handshakes. If they are
// invalid it logs the error and keeps the previous certificate. It is safe for concurrent use.
type Files struct {
	name      string // begins the names of both settings
	cert, key string
	now       func() time.Time
	logger    *slog.Logger

	mu                 sync.Mutex
	current            *tls.Certificate
	content            string // of both files, or the last read error
	loadedAt, warnedAt time.Time
}

// OpenFiles reads the chain and the private key. Its errors are mistakes in the settings name-cert
// and name-key.
func OpenFiles(name, cert, key string, now func() time.Time, logger *slog.Logger) (*Files, error) {
	if cert == "" || key == "" {
		return nil, oauth.NewMistake(name+"-cert", "and %s-key belong together: name both files", name)
	}
	f := &Files{
		name:   name,
		cert:   cert,
		key:    key,
		now:    now,
		logger: logger,
	}
	return f, f.load()
}

// TLS returns a configuration for TLS 1.2 and later.
func (f *Files) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: f.certificate}
}

// Client is the GetClientCertificate function of a tls.Config.
func (f *Files) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return f.certificate(nil)
}

func (f *Files) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now().Sub(f.loadedAt) >= reloadInterval {
		if err := f.load(); err != nil {
			f.logger.Error("the new TLS certificate is invalid, the old one stays in use", "file", f.cert, "error", err)
		}
	}
	return f.current, nil
}

// load parses the files if their content has changed, so that each error is reported once.
func (f *Files) load() error {
	f.loadedAt = f.now()
	defer f.warn()
	cert, certErr := readFile(f.name+"-cert", f.cert)
	key, keyErr := readFile(f.name+"-key", f.key)
	content, err := string(cert)+string(key), errors.Join(certErr, keyErr)
	if err != nil {
		content = err.Error()
	}
	if content == f.content && f.current != nil {
		return nil
	}
	if f.content = content; err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return oauth.NewMistake(f.name+"-cert", "and %s-key: %w: both must be PEM and belong together", f.name, err)
	}
	f.current, f.warnedAt = &pair, time.Time{}
	f.logger.Info("TLS certificate read", "file", f.cert, "names", pair.Leaf.DNSNames, "expires", pair.Leaf.NotAfter)
	return nil
}

// readFile reads the file that a setting names. It refuses a pipe, which would block.
func readFile(setting, path string) (text []byte, err error) {
	found, err := os.Stat(path)
	switch {
	case err != nil:
	case !found.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	default:
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, oauth.NewMistake(setting, "cannot be read: %w", err)
	}
	return text, nil
}

// warn logs once a day that the certificate expires soon.
func (f *Files) warn() {
	if f.current == nil || f.loadedAt.Sub(f.warnedAt) < warnInterval {
		return
	}
	leaf := f.current.Leaf
	before := min(warnBefore, leaf.NotAfter.Sub(leaf.NotBefore)/5)
	if left := leaf.NotAfter.Sub(f.loadedAt); left < before {
		f.warnedAt = f.loadedAt
		f.logger.Warn("the TLS certificate expires soon: replace its files",
			"file", f.cert, "expires", leaf.NotAfter, "left", left.Round(time.Minute).String())
	}
}

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
