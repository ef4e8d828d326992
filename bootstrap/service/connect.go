package service

import (
	"crypto/x509"
	"errors"
	"net/url"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

const maxAuthorities = 1 << 20 // bytes

// ConnectConfig is how a gateway connects to its upstreams.
type ConnectConfig struct {
	CAFile            string   // PEM file with authorities that are trusted besides those of the system
	CertFile, KeyFile string   // PEM files of the certificate that the gateway presents (mutual TLS)
	Proxy             *url.URL // http or https, of a proxy for https upstreams, with its password; nil for none
}

func (c *ConnectConfig) settings() []*settings.Setting {
	return []*settings.Setting{
		settings.File("upstream-ca", &c.CAFile,
			"PEM file with certificate authorities to trust for upstreams, besides those of the system").
			DefaultText("only those of the system").Example("/etc/pasteport/upstream-ca.pem"),
		settings.File("upstream-cert", &c.CertFile,
			"PEM file with the certificate chain that the gateway presents to upstreams; reloaded when it changes").
			DefaultText("none").Example("/etc/pasteport/upstream-cert.pem"),
		settings.File("upstream-key", &c.KeyFile, "PEM file with the private key of upstream-cert").
			Example("/etc/pasteport/upstream-key.pem"),
		settings.SecretURL("upstream-proxy", &c.Proxy,
			"http:// or https:// URL of the proxy for https upstreams; upstreams over http are reached directly"),
	}
}

// open returns the options of the connections to upstreams, or every mistake. http is allowed,
// because most upstreams run on this computer.
func (c ConnectConfig) open(config Config) (upstream.Reach, error) {
	reach := upstream.Reach{Proxy: c.Proxy}
	mistakes := []error{reach.CheckProxy()}
	var err error
	reach.RootCAs, err = c.roots(config.RootCAs)
	mistakes = append(mistakes, err)
	if c.CertFile+c.KeyFile != "" {
		files, err := certificates.OpenFiles(c.CertFile, c.KeyFile, config.Now, config.Logger)
		if mistakes = append(mistakes, err); err == nil {
			reach.Certificate = files.Client
		}
	}
	return reach, oauth.Within("Gateway.Connect", errors.Join(mistakes...))
}

// roots returns known, nil for those of the system, with the authorities in CAFile.
func (c ConnectConfig) roots(known *x509.CertPool) (*x509.CertPool, error) {
	if c.CAFile == "" {
		return known, nil
	}
	text, err := settings.ReadFile(c.CAFile, maxAuthorities)
	if err != nil {
		return nil, oauth.NewMistake("%s cannot be read: %s", oauth.Field("CAFile"), err)
	}
	roots := x509.NewCertPool()
	if known != nil {
		roots = known.Clone()
	} else if system, err := x509.SystemCertPool(); err == nil {
		roots = system
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, oauth.NewMistake(
			"%s: the file has no certificate in PEM: put the certificate of the authority into it",
			oauth.Field("CAFile"))
	}
	return roots, nil
}
