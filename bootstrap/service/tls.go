package service

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/domain/oauth"
)

// TLSConfig chooses the source of the certificate: two files, an ACME authority, or none behind a
// proxy that terminates TLS.
type TLSConfig struct {
	CertFile  string   `set:"tls-cert" unset:"plain HTTP, for a TLS proxy in front" path:"file" example:"/etc/pasteport/cert.pem" doc:"PEM file with the certificate chain; reloaded when it changes"`
	KeyFile   string   `set:"tls-key" path:"file" example:"/etc/pasteport/key.pem" doc:"PEM file with the private key of tls-cert"`
	Domains   []string `set:"acme-domains" example:"[cms.example.com]" doc:"domains for which to get certificates by ACME; you accept the terms of the certificate authority, which must be able to reach addr at port 443 of each domain"`
	Email     string   `set:"acme-email" example:"ada@example.com" doc:"contact address for the certificate authority"`
	Directory string   `set:"acme-directory" default:"https://acme-v02.api.letsencrypt.org/directory" doc:"ACME directory URL of the certificate authority"`
}

// open returns the TLS configuration, nil for plain HTTP, or every mistake.
func (c TLSConfig) open(config Config) (*tls.Config, error) {
	var mistakes []error
	wrong := func(setting, sentence string, values ...any) {
		mistakes = append(mistakes, oauth.NewMistake(setting, sentence, values...))
	}
	if c.CertFile != "" && len(c.Domains) > 0 {
		wrong("tls-cert", "and acme-domains exclude each other: use a certificate from files or from an ACME authority")
	}
	if c.Email != "" && len(c.Domains) == 0 {
		wrong("acme-email", "is set, but acme-domains is empty: leave it out, or name the domains")
	}
	for _, domain := range c.Domains {
		if !strings.Contains(strings.Trim(domain, "."), ".") || strings.ContainsAny(domain, "*/: ") {
			wrong("acme-domains", "has %q, which an ACME authority cannot validate: write domains like "+
				"cms.example.com", domain)
		}
	}
	if !strings.HasPrefix(c.Directory, "https://") && len(c.Domains) > 0 {
		wrong("acme-directory", "is not https: write the directory URL of the authority, for example %s",
			certificates.LetsEncrypt)
	}
	var opened *tls.Config
	switch {
	case c.CertFile+c.KeyFile != "":
		files, err := certificates.OpenFiles("tls", c.CertFile, c.KeyFile, config.Now, config.Logger)
		if mistakes = append(mistakes, err); err == nil {
			opened = files.TLS()
		}
	case len(c.Domains) > 0:
		opened = certificates.Authority{
			Directory: c.Directory,
			Domains:   c.Domains,
			Email:     c.Email,
			Cache:     filepath.Join(config.DataDir, "acme"),
			Roots:     config.RootCAs,
		}.TLS()
	}
	return opened, errors.Join(mistakes...)
}
