package service

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

const letsEncrypt = certificates.LetsEncrypt

// TLSConfig chooses the source of the certificate: two files, an ACME authority, or none behind a
// proxy that terminates TLS.
type TLSConfig struct {
	CertFile, KeyFile string   // PEM; reloaded when they change
	Domains           []string // for certificates by ACME
	Email             string   // contact address for the authority
	Directory         string   // URL of the authority
}

// open returns the TLS configuration, nil for plain HTTP, or every mistake.
func (c TLSConfig) open(config Config) (*tls.Config, error) {
	const cert, domains, directory = oauth.Field("CertFile"), oauth.Field("Domains"), oauth.Field("Directory")
	var mistakes []error
	if c.CertFile != "" && len(c.Domains) > 0 {
		mistakes = append(mistakes,
			oauth.NewMistake("%s and %s exclude each other: use a certificate from files or from an ACME authority",
				cert, domains))
	}
	if c.Email != "" && len(c.Domains) == 0 {
		mistakes = append(mistakes,
			oauth.NewMistake("%s is set, but %s is empty: leave it out, or name the domains",
				oauth.Field("Email"), domains))
	}
	for _, domain := range c.Domains {
		if !strings.Contains(strings.Trim(domain, "."), ".") || strings.ContainsAny(domain, "*/: ") {
			mistakes = append(mistakes,
				oauth.NewMistake(
					"%s has %q, which an ACME authority cannot validate: write domains like cms.example.com",
					domains, domain))
		}
	}
	if !strings.HasPrefix(c.Directory, "https://") && len(c.Domains) > 0 {
		mistakes = append(mistakes,
			oauth.NewMistake("%s is not https: write the directory URL of the authority, for example %s", directory,
				certificates.LetsEncrypt))
	}
	var opened *tls.Config
	switch {
	case c.CertFile+c.KeyFile != "":
		files, err := certificates.OpenFiles(c.CertFile, c.KeyFile, config.Now, config.Logger)
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
	return opened, oauth.Within("TLS", errors.Join(mistakes...))
}

func (c *Config) tls() settings.Group {
	return settings.Group{Title: "TLS", Settings: []*settings.Setting{
		settings.File("tls-cert", &c.TLS.CertFile, "PEM file with the certificate chain; reloaded when it changes").
			DefaultText("plain HTTP, for a TLS proxy in front").Example("/etc/pasteport/cert.pem"),
		settings.File("tls-key", &c.TLS.KeyFile, "PEM file with the private key of tls-cert").
			Example("/etc/pasteport/key.pem"),
		settings.Texts("acme-domains", &c.TLS.Domains,
			"domains for which to get certificates by ACME; you accept the terms of the certificate authority, "+
				"which must be able to reach addr at port 443 of each domain").Example("cms.example.com"),
		settings.Text("acme-email", &c.TLS.Email, "contact address for the certificate authority").
			Example("ada@example.com"),
		settings.URL("acme-directory", &c.TLS.Directory, "ACME directory URL of the certificate authority"),
	}}
}
