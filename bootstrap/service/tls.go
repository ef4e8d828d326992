package service

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/certificates"
	"github.com/pasteport/pasteport/bootstrap/settings"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	letsEncrypt = certificates.LetsEncrypt
	pemLimit    = 1 << 20
)

// TLSConfig chooses the source of the certificate: two files, an ACME authority, or none behind a
// proxy that terminates TLS.
type TLSConfig struct {
	CertFile, KeyFile string   // PEM; reloaded when they change
	Domains           []string // for certificates by ACME
	Email             string   // contact address for the authority
	Directory         string   // URL of the authority
}

func (c TLSConfig) check() error {
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
	return errors.Join(append(mistakes, checkKeyPair(c.CertFile, c.KeyFile))...)
}

// checkKeyPair reports mistakes in the fields CertFile and KeyFile, and reads the two PEM files;
// the names are empty for none.
func checkKeyPair(certFile, keyFile string) error {
	const cert, key = oauth.Field("CertFile"), oauth.Field("KeyFile")
	switch {
	case certFile == "" && keyFile == "":
		return nil
	case certFile == "" || keyFile == "":
		return oauth.NewMistake("%s and %s belong together: name both files", cert, key)
	}
	chain, certErr := readPEM(cert, certFile)
	secret, keyErr := readPEM(key, keyFile)
	if err := errors.Join(certErr, keyErr); err != nil {
		return err
	}
	if _, err := tls.X509KeyPair(chain, secret); err != nil {
		return oauth.NewMistake("%s and %s: %s: both must be PEM and belong together", cert, key, err)
	}
	return nil
}

func readPEM(field oauth.Field, file string) ([]byte, error) {
	text, err := settings.ReadFile(file, pemLimit)
	if err != nil {
		return nil, oauth.NewMistake("%s cannot be read: %s", field, err)
	}
	return text, nil
}

// clock returns the configured clock, or the system's.
func (c Config) clock() func() time.Time {
	if c.Now == nil {
		return time.Now
	}
	return c.Now
}

// server returns the TLS configuration, nil for plain HTTP.
func (c TLSConfig) server(config Config) (*tls.Config, error) {
	switch {
	case c.CertFile != "":
		files, err := certificates.OpenFiles(c.CertFile, c.KeyFile, config.clock(), config.Logger)
		if err != nil {
			return nil, err
		}
		return files.TLS(), nil
	case len(c.Domains) > 0:
		return certificates.Authority{
			Directory: c.Directory,
			Domains:   c.Domains,
			Email:     c.Email,
			Cache:     filepath.Join(config.DataDir, "acme"),
			Roots:     config.RootCAs,
		}.TLS(), nil
	}
	return nil, nil
}

func (c *Config) tls() settings.Group {
	return settings.Group{Title: "TLS", Settings: []*settings.Setting{
		settings.File("tls-cert", &c.TLS.CertFile, "PEM file with the certificate chain; reloaded when it changes").
			DefaultText("plain HTTP, for a TLS proxy in front").Example("/etc/pasteport/cert.pem"),
		settings.File("tls-key", &c.TLS.KeyFile, "PEM file with the private key of tls-cert").
			Example("/etc/pasteport/key.pem"),
		settings.Texts("acme-domains", &c.TLS.Domains,
			"domains for certificates by ACME; you accept the terms of the certificate authority; "+
				"it must reach addr at port 443 of each domain").Example("cms.example.com"),
		settings.Text("acme-email", &c.TLS.Email, "contact address for the certificate authority").
			Example("ada@example.com"),
		settings.URL("acme-directory", &c.TLS.Directory, "ACME directory URL of the certificate authority"),
	}}
}
