package service

import (
	"crypto/x509"
	"errors"
	"net/url"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/adapters/outbound"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

// ConnectConfig is how a gateway connects to its upstreams.
type ConnectConfig struct {
	CAFile            string // PEM file with authorities that are trusted besides those of the system
	CertFile, KeyFile string // PEM files of the certificate that the gateway presents (mutual TLS)
	Proxy             string // http or https URL of a proxy for https upstreams, with its password
	MaxConnections    int    // to each upstream; 0 for no limit
}

func (c *ConnectConfig) settings() []*settings.Setting {
	return []*settings.Setting{
		settings.File("upstream-ca", &c.CAFile,
			"PEM file with certificate authorities that upstreams may have, besides those of the system").
			DefaultText("only those of the system").Example("/etc/pasteport/upstream-ca.pem"),
		settings.File("upstream-cert", &c.CertFile,
			"PEM file with the certificate chain that the gateway presents to upstreams; reloaded when it changes").
			DefaultText("none").Example("/etc/pasteport/upstream-cert.pem"),
		settings.File("upstream-key", &c.KeyFile, "PEM file with the private key of upstream-cert").
			Example("/etc/pasteport/upstream-key.pem"),
		settings.Secret("upstream-proxy", &c.Proxy,
			"http:// or https:// URL of the proxy for https upstreams; upstreams over http are reached directly").
			Example("http://pasteport:a-long-random-text@proxy.internal:3128"),
		settings.Number("upstream-connections", &c.MaxConnections,
			"maximum number of connections to each upstream, also those of open streams; more requests wait; 0 for "+
				"no limit").Example("500"),
	}
}

// check reports mistakes, and reads the files.
func (c ConnectConfig) check() error {
	var mistakes []error
	if _, err := c.roots(nil); err != nil {
		mistakes = append(mistakes, err)
	}
	if c.Proxy != "" && !oauth.IsProxyURL(c.Proxy) {
		mistakes = append(mistakes,
			oauth.NewMistake("%s is no URL of an HTTP proxy: write http://host:3128 or https://host:3128, with "+
				"user:password@ before "+
				"the host if the proxy requires them", oauth.Field("Proxy")))
	}
	return errors.Join(append(mistakes, checkKeyPair(c.CertFile, c.KeyFile))...)
}

// options returns the options of the connections to upstreams. http is allowed, because most
// upstreams run on this computer.
func (c ConnectConfig) options(config Config) (outbound.Options, error) {
	o := outbound.Options{AllowHTTP: true, MaxConnections: c.MaxConnections}
	var err error
	if o.RootCAs, err = c.roots(config.RootCAs); err != nil {
		return o, err
	}
	if c.Proxy != "" {
		if o.Proxy, err = url.Parse(c.Proxy); err != nil {
			return o, oauth.NewMistake("%s is no URL", oauth.Field("Proxy"))
		}
	}
	if c.CertFile != "" {
		files, err := certificates.OpenFiles(c.CertFile, c.KeyFile, config.clock(), config.Logger)
		if err != nil {
			return o, err
		}
		o.Certificate = files.Client
	}
	return o, nil
}

// roots returns known, nil for those of the system, with the authorities in CAFile.
func (c ConnectConfig) roots(known *x509.CertPool) (*x509.CertPool, error) {
	if c.CAFile == "" {
		return known, nil
	}
	text, err := readPEM("CAFile", c.CAFile)
	if err != nil {
		return nil, err
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
