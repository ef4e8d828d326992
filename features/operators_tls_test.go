package features_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// CertificateFiles are a certificate and its key on disk.
type CertificateFiles struct{ Cert, Key string }

// NewCertificateFiles writes a certificate with this serial number and lifetime.
func NewCertificateFiles(serial int64, life time.Duration) CertificateFiles {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	files := CertificateFiles{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	files.Issue(serial, life)
	return files
}

// Issue replaces the certificate and key in the files.
func (f CertificateFiles) Issue(serial int64, life time.Duration) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(life),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"cms.example.com", "localhost"},
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	f.write(f.Cert, "CERTIFICATE", signed)
	f.write(f.Key, "PRIVATE KEY", private)
}

func (CertificateFiles) write(file, kind string, content []byte) {
	GinkgoHelper()
	Expect(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)).To(Succeed())
}

// Secured serves over TLS with the files.
func Secured(files CertificateFiles) *Operated {
	GinkgoHelper()
	return Operate(func(config *service.Config) {
		config.TLS = service.TLSConfig{CertFile: files.Cert, KeyFile: files.Key}
	})
}

// Shake opens a connection and returns the serial number of the server's certificate.
func (o *Operated) Shake(change ...func(*tls.Config)) (int64, error) {
	config := &tls.Config{InsecureSkipVerify: true} // the serial number identifies the certificate
	for _, apply := range change {
		apply(config)
	}
	conn, err := tls.Dial("tcp", o.Issuer[len("http://"):], config)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

var _ = Describe("TLS", Label("operations"), func() {
	It("serves HTTP/2 with the certificate in the files", func(ctx SpecContext) {
		service := Secured(NewCertificateFiles(1, 90*24*time.Hour))
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		DeferCleanup(client.CloseIdleConnections)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"https"+service.Issuer[len("http"):]+"/.well-known/oauth-authorization-server", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		answer, err := client.Do(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer).To(And(HaveField("StatusCode", http.StatusOK), HaveField("ProtoMajor", 2)))
		Expect(service.Log.String()).NotTo(ContainSubstring("expires soon"))
	})

	It("supports TLS 1.2, and no older version", func() {
		service := Secured(NewCertificateFiles(1, 90*24*time.Hour))
		_, err := service.Shake(func(config *tls.Config) { config.MaxVersion = tls.VersionTLS12 })
		Expect(err).NotTo(HaveOccurred())
		_, err = service.Shake(func(config *tls.Config) {
			config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		})
		Expect(err).To(MatchError(ContainSubstring("protocol version")))
	})

	It("loads a new certificate without a restart", func() {
		files := NewCertificateFiles(1, 90*24*time.Hour)
		service := Secured(files)
		Expect(service.Shake()).To(BeEquivalentTo(1))
		files.Issue(2, 90*24*time.Hour)
		service.Clock.Advance(time.Second)
		Expect(service.Shake()).To(BeEquivalentTo(2))
	})

	DescribeTable("keeps its certificate and logs it once", func(spoil func(CertificateFiles), complaint string) {
		files := NewCertificateFiles(1, 90*24*time.Hour)
		service := Secured(files)
		spoil(files)
		for range 3 {
			service.Clock.Advance(time.Second)
			Expect(service.Shake()).To(BeEquivalentTo(1))
		}
		Expect(linesWith(service.Log.String(), "the new TLS certificate is invalid, the old one stays in use")).
			To(ConsistOf(ContainSubstring(complaint)))
		files.Issue(2, 90*24*time.Hour)
		service.Clock.Advance(time.Second)
		Expect(service.Shake()).To(BeEquivalentTo(2))
	},
		Entry("when the new certificate is malformed", func(f CertificateFiles) {
			f.write(f.Cert, "CERTIFICATE", []byte("no certificate"))
		}, "both must be PEM and belong together"),
		Entry("when a file is missing", func(f CertificateFiles) {
			Expect(os.Remove(f.Cert)).To(Succeed())
		}, "no such file"),
	)

	It("warns once a day when the certificate expires soon", func() {
		files := NewCertificateFiles(1, 20*24*time.Hour)
		service := Secured(files)
		warnings := func() []string { return linesWith(service.Log.String(), "the TLS certificate expires soon") }
		Expect(warnings()).To(BeEmpty())
		service.Clock.Advance(17 * 24 * time.Hour)
		for range 2 {
			Expect(service.Shake()).To(BeEquivalentTo(1))
			service.Clock.Advance(time.Minute)
		}
		Expect(warnings()).To(HaveLen(1))
		service.Clock.Advance(24 * time.Hour)
		Expect(service.Shake()).To(BeEquivalentTo(1))
		Expect(warnings()).To(HaveLen(2))
	})

	It("refuses to start with empty files", func(ctx SpecContext) {
		files := NewCertificateFiles(1, time.Hour)
		for _, file := range []string{files.Cert, files.Key} {
			Expect(os.Truncate(file, 0)).To(Succeed())
		}
		ran := Run(ctx, "config", "--issuer", "https://cms.example.com", "--tls-cert", files.Cert,
			"--tls-key", files.Key)
		Expect(ran).To(And(HaveField("Code", 1),
			HaveField("Err", ContainSubstring("both must be PEM and belong together"))))
	})

	DescribeTable("refuses to start with", func(ctx SpecContext, complaint string, flags ...string) {
		dir := filepath.Join(GinkgoT().TempDir(), "site")
		ran := Run(ctx, append([]string{"serve", "--issuer", "https://cms.example.com", "--addr", "127.0.0.1:0",
			"--admin-addr", "off", "--data", dir}, flags...)...)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(ContainSubstring(complaint))
		Expect(dir).NotTo(BeADirectory())
	},
		Entry("a certificate without a key", "--tls-cert and tls-key belong together", "--tls-cert", "cert.pem"),
		Entry("certificate files and ACME at once", "exclude each other", "--tls-cert", "cert.pem", "--tls-key",
			"key.pem", "--acme-domains", "cms.example.com"),
		Entry("a domain without a dot", `"localhost", which an ACME authority cannot validate`, "--acme-domains",
			"localhost"),
		Entry("an ACME directory without TLS", "acme-directory", "--acme-domains", "cms.example.com",
			"--acme-directory", "http://127.0.0.1/dir"),
	)
})
