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
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

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

func (f CertificateFiles) Issue(serial int64, life time.Duration) {
	GinkgoHelper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(life),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"cms.example.com", "localhost"},
	}
	signed := must(x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key))
	private := must(x509.MarshalPKCS8PrivateKey(key))
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
		r := must(http.NewRequestWithContext(ctx, http.MethodGet,
			"https"+service.Issuer[len("http"):]+"/.well-known/oauth-authorization-server", http.NoBody))
		answer := must(client.Do(r))
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

// behind returns a world that trusts proxies in these networks.
func behind(networks ...string) func(*service.Config) {
	return func(config *service.Config) {
		for _, network := range networks {
			config.TrustedProxies = append(config.TrustedProxies, netip.MustParsePrefix(network))
		}
	}
}

func forwarded(values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header["X-Forwarded-For"] = values }
}

var _ = Describe("Trusting proxies", Label("operations", "B6"), func() {
	DescribeTable("logs the address",
		func(ctx SpecContext, trusted []string, change func(*http.Request), address string) {
			world := NewWorld(behind(trusted...))
			Post(ctx, world.Issuer+"/oauth/token", url.Values{}, change)
			Expect(world.Log.String()).To(ContainSubstring(`"address":"` + address + `"`))
		},
		Entry("of the peer when other networks are trusted", []string{"10.0.0.0/8"}, forwarded("203.0.113.7"),
			"127.0.0.1"),
		Entry("that a proxy in front of the proxy names", []string{"127.0.0.1/32", "10.0.0.0/8"},
			forwarded("203.0.113.7, 10.1.2.3"), "203.0.113.7"),
		Entry("of the last untrusted hop, despite a trusted address before it", []string{"127.0.0.1/32", "10.0.0.0/8"},
			forwarded("198.51.100.1, 10.1.2.3, 203.0.113.7"), "203.0.113.7"),
		Entry("of an untrusted loopback address", []string{"127.0.0.1/32"}, forwarded("203.0.113.7, 127.0.0.2"),
			"127.0.0.2"),
		Entry("of the proxy when the last value is invalid", []string{"127.0.0.1/32"},
			forwarded("203.0.113.7, unknown"), "127.0.0.1"),
		Entry("that the proxy names in Forwarded", []string{"127.0.0.1/32"},
			with("Forwarded", `for="203.0.113.7:5555";proto=https`), "203.0.113.7"),
		Entry("of the peer, and ignores other headers", []string{"127.0.0.1/32"}, with("X-Real-Ip", "203.0.113.7"),
			"127.0.0.1"),
	)

	It("counts wrong tokens by the forwarded address", func(ctx SpecContext) {
		operated := Operate(behind("127.0.0.1/32"))
		client := operated.NewClient()
		operated.Clock.Stop()
		guess := func(address, token string) int {
			page := client.Consent(ctx)
			return Post(ctx, page.Action,
				url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"approve"}, "bearer_token": {token}},
				forwarded(address)).StatusCode
		}
		slowed := func() string { return operated.AskAdmin(ctx, "/metrics").Text }
		for range freeGuesses + 1 {
			Expect(guess("203.0.113.7", "demo_wrong"+rand.Text())).To(Equal(http.StatusForbidden))
		}
		Expect(guess("198.51.100.1", operated.Token)).To(Equal(http.StatusSeeOther))
		Expect(slowed()).To(ContainSubstring(`pasteport_limits_total{effect="slowed",limit="wrong_tokens"} 0`))
		Expect(guess("198.51.100.1, 203.0.113.7", "demo_wrong")).To(Equal(http.StatusForbidden))
		Expect(slowed()).To(ContainSubstring(`pasteport_limits_total{effect="slowed",limit="wrong_tokens"} 1`))
	})

	It("lets doctor on the same computer find a proxy that is not listed", Label("doctor"), func(ctx SpecContext) {
		service := Operate()
		Expect(service.diagnose(ctx).Out).NotTo(ContainSubstring("trusted-proxies"))
		Post(ctx, service.Issuer+"/oauth/token", url.Values{}, forwarded("203.0.113.7"))
		found := service.diagnose(ctx)
		Expect(found.Of("upstream").Seen).To(ContainSubstring("set trusted-proxies: 127.0.0.1"), found.Out)
		listed := Operate(behind("127.0.0.1/32"))
		Post(ctx, listed.Issuer+"/oauth/token", url.Values{}, forwarded("203.0.113.7"))
		Expect(listed.diagnose(ctx).Out).NotTo(ContainSubstring("trusted-proxies"))
	})

	DescribeTable("refuses to start with", func(ctx SpecContext, written, complaint string) {
		ran := Run(ctx, "serve", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--trusted-proxies", written,
			"--data", GinkgoT().TempDir())
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(ContainSubstring(complaint))
	},
		Entry("a host name", "proxy.example",
			`"proxy.example": write a list of networks such as 10.0.0.0/8, or addresses`),
		Entry("an IPv4-mapped IPv6 network", "::ffff:10.0.0.0/104", "networks such as 10.0.0.0/8"),
		Entry("all of IPv4", "0.0.0.0/0", "name the networks of your own proxies"),
	)
})

var _ = Describe("Logging", Label("operations", "H8"), func() {
	It("adds a request id to every log line of a request, and returns it", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		page := client.Consent(ctx)
		answer := Post(ctx, page.Action, url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"deny"}},
			with("X-Request-Id", "chosen-by-a-stranger"))
		id := answer.Header.Get("X-Request-Id")
		Expect(id).To(MatchRegexp(`^[A-Z2-7]{12}$`))
		Expect(linesWith(world.Log.String(), `"request":"`+id+`"`)).
			To(ConsistOf(ContainSubstring(`"msg":"consent_denied"`), ContainSubstring(`"msg":"request"`)))
		Expect(world.Log.String()).NotTo(ContainSubstring("chosen-by-a-stranger"))
	})
})

var _ = Describe("Listening on localhost in development", Label("configuration", "F8"), func() {
	It("publishes localhost with the configured port", func(ctx SpecContext) {
		workingFolder()
		Expect(Run(ctx, "config", "--dev", "--addr=localhost:9123").Out).
			To(And(ContainSubstring("issuer: http://localhost:9123 "),
				ContainSubstring("resource: http://localhost:9123/mcp ")))
		Expect(Run(ctx, "config", "--dev", "--addr=127.0.0.1:9123").Out).
			To(ContainSubstring("issuer: http://127.0.0.1:9123 "))
	})

	It("publishes localhost with the port that it got", func(ctx SpecContext) {
		clients, dir := NewClientSite(), GinkgoT().TempDir()
		run := BuildBinary().Run([]string{"SSL_CERT_FILE=" + clients.Certificate()},
			"serve", "--demo-token", editorToken, "--dev", "--addr", "localhost:0", "--admin-addr", "off",
			"--data", dir)
		Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say(
			`serving http://localhost:\d+ on .*\nnext: connect an MCP client to http://localhost:\d+/mcp\n`))
		world := &World{
			Issuer:  issuerIn(run),
			Dir:     dir,
			Clients: clients,
			Token:   editorToken,
		}
		Expect(world.Issuer).To(HavePrefix("http://localhost:"))
		Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("publishes localhost in the demo too", func(SpecContext) {
		run := BuildBinary().Run(nil, "demo", "--once", "--addr", "localhost:0", "--data", GinkgoT().TempDir())
		Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say(`http://localhost:\d+`))
	}, SpecTimeout(time.Minute))

	It("keeps the settings of a service away from the demo", func(SpecContext) {
		service := []string{"PASTEPORT_DATABASE=postgres://127.0.0.1:1/none",
			"PASTEPORT_UPSTREAM=https://mcp.example/mcp", "PASTEPORT_BIND_TOOLS=true"}
		run := BuildBinary().Run(service, "demo", "--once", "--addr", "127.0.0.1:0", "--data", GinkgoT().TempDir())
		Eventually(run).WithTimeout(patience).Should(gexec.Exit(0))
	}, SpecTimeout(time.Minute))
})
