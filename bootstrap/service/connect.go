package service

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

const maxAuthorities = 1 << 20 // bytes

// ConnectConfig is how a gateway connects to its upstreams.
type ConnectConfig struct {
	CAFile   string   `set:"upstream-ca" unset:"only those of the system" path:"file" example:"/etc/pasteport/upstream-ca.pem" doc:"PEM file with certificate authorities to trust for upstreams, besides those of the system"`
	CertFile string   `set:"upstream-cert" unset:"none" path:"file" example:"/etc/pasteport/upstream-cert.pem" doc:"PEM file with the certificate chain that the gateway presents to upstreams; reloaded when it changes"`
	KeyFile  string   `set:"upstream-key" path:"file" example:"/etc/pasteport/upstream-key.pem" doc:"PEM file with the private key of upstream-cert"`
	Proxy    *url.URL `set:"upstream-proxy" secret:"true" allowed:"a URL whose password has %2F for a slash and %23 for #" doc:"http:// or https:// URL of the proxy for https upstreams; upstreams over http are reached directly"`
}

// open returns the options of the connections to upstreams, or every mistake. http is allowed,
// because most upstreams run on this computer.
func (c ConnectConfig) open(config Config) (gateway.Reach, error) {
	roots, err := WithAuthorities(config.RootCAs, c.CAFile)
	reach := gateway.Reach{Proxy: c.Proxy, RootCAs: roots}
	mistakes := []error{reach.CheckProxy("upstream-proxy")}
	if err != nil {
		mistakes = append(mistakes, oauth.NewMistake("upstream-ca", "cannot be read: %w", err))
	}
	if c.CertFile+c.KeyFile != "" {
		files, err := certificates.OpenFiles("upstream", c.CertFile, c.KeyFile, config.Now, config.Logger)
		if mistakes = append(mistakes, err); err == nil {
			reach.Certificate = files.Client
		}
	}
	return reach, errors.Join(mistakes...)
}

// WithAuthorities returns known, nil for those of the system, with those in the file, "" for none.
func WithAuthorities(known *x509.CertPool, file string) (*x509.CertPool, error) {
	if file == "" {
		return known, nil
	}
	text, err := settings.ReadFile(file, maxAuthorities)
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
		return nil, fmt.Errorf("%s has no certificate in PEM: put the certificate of the authority into it", file)
	}
	return roots, nil
}
