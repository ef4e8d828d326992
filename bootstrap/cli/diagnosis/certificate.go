package diagnosis

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/pasteport/pasteport/adapters/certificates"
)

// readCertificate reads the certificate and key from one file, and creates the file if it is missing.
func readCertificate(file string) (tls.Certificate, error) {
	certificate, err := tls.LoadX509KeyPair(file, file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeCertificate(file)
	}
	if err != nil {
		return certificate, fmt.Errorf("reading the certificate in %s: %w: name a PEM file that holds certificate and key with --certificate", file, err)
	}
	return certificate, nil
}

// makeCertificate creates a certificate for 127.0.0.1; a server trusts it if SSL_CERT_FILE names the file.
func makeCertificate(file string) (tls.Certificate, error) {
	certificate, err := certificates.SelfSigned(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return certificate, fmt.Errorf("making a certificate: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return certificate, fmt.Errorf("encoding the key of the certificate: %w", err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Leaf.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return certificate, fmt.Errorf("writing the certificate: %w: name a writable file with --certificate", err)
	}
	return certificate, nil
}
