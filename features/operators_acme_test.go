package features_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

// Authority is Pebble, the test certificate authority for ACME clients. It resolves every name to
// loopback.
type Authority struct {
	Directory  string
	Root       *x509.CertPool // of the certificates that it issues
	vouching   CertificateFiles
	run, names *gexec.Session
}

// NewAuthority starts an authority that validates challenges at this address.
func NewAuthority(address string) *Authority {
	GinkgoHelper()
	programs := os.Getenv("PEBBLE")
	if programs == "" {
		Skip(".ci/run acme runs this")
	}
	listens, manages, names := freeAddress(), freeAddress(), freeAddress()
	a := &Authority{Directory: "https://" + listens + "/dir", Root: x509.NewCertPool(),
		vouching: NewCertificateFiles(1, time.Hour)}
	a.names = Binary(filepath.Join(programs, "pebble-challtestsrv")).Run(nil, "-dnsserver", names,
		"-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "",
		"-management", freeAddress())
	a.run = Binary(filepath.Join(programs, "pebble")).
		Run([]string{"PEBBLE_VA_NOSLEEP=1"}, "-strict", "-dnsserver", names,
			"-config", a.configuration(listens, manages, address))
	a.readRoot("https://" + manages + "/roots/0")
	return a
}

func (a *Authority) configuration(listens, manages, proof string) string {
	GinkgoHelper()
	_, port, err := net.SplitHostPort(proof)
	Expect(err).NotTo(HaveOccurred())
	number := must(strconv.Atoi(port))
	text := must(json.Marshal(params{"pebble": params{
		"listenAddress":           listens,
		"managementListenAddress": manages,
		"certificate":             a.vouching.Cert,
		"privateKey":              a.vouching.Key,
		"httpPort":                1,
		"tlsPort":                 number,
		"profiles":                params{"default": params{"description": "as ever", "validityPeriod": 7776000}},
	}}))
	file := filepath.Join(GinkgoT().TempDir(), "pebble.json")
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	return file
}

// readRoot waits until the authority runs.
func (a *Authority) readRoot(address string) {
	GinkgoHelper()
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var answer *http.Response
	Eventually(func() (err error) {
		answer, err = client.Get(address)
		return err
	}).WithTimeout(patience).Should(Succeed())
	root := gbytes.BufferReader(answer.Body)
	Eventually(root).WithTimeout(patience).Should(gbytes.Say("END CERTIFICATE"))
	Expect(a.Root.AppendCertsFromPEM(root.Contents())).To(BeTrue())
}

// Serve runs a service that gets its certificates from the authority.
func (a *Authority) Serve(binary Binary, address, dir string) *gexec.Session {
	GinkgoHelper()
	run := binary.Run([]string{"SSL_CERT_FILE=" + a.vouching.Cert}, "serve", "--issuer", "https://cms.example.com",
		"--addr", address, "--admin-addr", "off",
		"--data", dir, "--acme-domains", "cms.example.com", "--acme-email", "ada@example.com", "--acme-directory",
		a.Directory)
	Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say("serving"))
	return run
}

// certificate returns the certificate served for a name, if the authority has issued it.
func (a *Authority) certificate(address, name string) (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, RootCAs: a.Root})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0], nil
}

var _ = Describe("Getting a certificate over ACME", Label("acme", "RFC 8555"), func() {
	It("proves its domain on its own port, and keeps account and certificate across a restart", func() {
		address, dir := freeAddress(), filepath.Join(GinkgoT().TempDir(), "site")
		authority := NewAuthority(address)
		binary := BuildBinary()
		run := authority.Serve(binary, address, dir)
		issued, err := authority.certificate(address, "cms.example.com")
		Expect(err).NotTo(HaveOccurred())
		Expect(issued.DNSNames).To(ConsistOf("cms.example.com"))
		Expect(authority.run.Out).To(gbytes.Say("set VALID by completed challenge"))

		_, err = authority.certificate(address, "other.example.com")
		Expect(err).To(MatchError(ContainSubstring("internal error")),
			"names that are not configured get no certificate")
		Expect(filepath.Join(dir, "acme")).To(BeADirectory())

		Expect(run.Terminate().Wait(patience).ExitCode()).To(Equal(0))
		authority.run.Kill().Wait(patience)
		authority.Serve(binary, address, dir)
		kept, err := authority.certificate(address, "cms.example.com")
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.SerialNumber).To(Equal(issued.SerialNumber))
	})
})
