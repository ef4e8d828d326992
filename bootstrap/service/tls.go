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
	const cert, domains, directory = oauth.Field("TLSCert"), oauth.Field("ACMEDomains"), oauth.Field("ACMEDirectory")
	var mistakes []error
	if c.CertFile != "" && len(c.Domains) > 0 {
		mistakes = append(mistakes,
			oauth.NewMistake("%s and %s exclude each other: use a certificate from files or from an ACME authority",
				cert, domains))
	}
	if c.Email != "" && len(c.Domains) == 0 {
		mistakes = append(mistakes,
			oauth.NewMistake("%s is set, but %s is empty: leave it out, or name the domains",
				oauth.Field("ACMEEmail"), domains))
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
	return errors.Join(append(mistakes, keyPair{cert, c.CertFile, "TLSKey", c.KeyFile}.check())...)
}

// keyPair is a certificate and its private key in two PEM files; the file names are empty for none.
type keyPair struct {
	cert     oauth.Field
	certFile string
	key      oauth.Field
	keyFile  string
}

// check reports mistakes, and reads the files.
func (p keyPair) check() error {
	switch {
	case p.certFile == "" && p.keyFile == "":
		return nil
	case p.certFile == "" || p.keyFile == "":
		return oauth.NewMistake("%s and %s belong together: name both files", p.cert, p.key)
	}
	chain, certErr := readPEM(p.cert, p.certFile)
	key, keyErr := readPEM(p.key, p.keyFile)
	if err := errors.Join(certErr, keyErr); err != nil {
		return err
	}
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		return oauth.NewMistake("%s and %s: %s: both must be PEM and belong together", p.cert, p.key, err)
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
