package features_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// serverTLS returns the configuration of a server with this certificate.
func (f CertificateFiles) serverTLS() *tls.Config {
	GinkgoHelper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	Expect(err).NotTo(HaveOccurred())
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// pool returns the certificate as the only authority.
func (f CertificateFiles) pool() *x509.CertPool {
	GinkgoHelper()
	text, err := os.ReadFile(f.Cert)
	Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(text)).To(BeTrue())
	return roots
}

var _ = Describe("Connecting a gateway to its upstream", Label("gateway", "U20"), func() {
	connecting := func(address string, connect service.ConnectConfig) *World {
		return NewGateway(address, func(config *service.Config) { config.Gateway.Connect = connect })
	}
	tools := func(ctx context.Context, world *World) []string {
		GinkgoHelper()
		return world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access).
			Ask(ctx, "tools/list", params{}).Tools()
	}
	notVerified := func(ctx context.Context, world *World) {
		GinkgoHelper()
		Expect(world.NewClient().Consent(ctx).Approve(ctx, world.Token).StatusCode).
			To(Equal(http.StatusServiceUnavailable))
	}

	It("trusts the authority in upstream-ca, for calls and for the verification of pasted keys", func(ctx SpecContext) {
		files := NewCertificateFiles(1, time.Hour)
		address := NewUpstreamOverTLS(files.serverTLS(), apiKey).URL + "/mcp"
		Expect(tools(ctx, connecting(address, service.ConnectConfig{CAFile: files.Cert}))).To(HaveLen(3))
		distrusting := connecting(address, service.ConnectConfig{})
		notVerified(ctx, distrusting)
		Expect(distrusting.Log.String()).To(ContainSubstring("its certificate is not trusted"))
	})

	It("presents the certificate of upstream-cert to a server that requires one", func(ctx SpecContext) {
		own := NewCertificateFiles(2, time.Hour)
		config := NewCertificateFiles(1, time.Hour).serverTLS()
		config.ClientAuth, config.ClientCAs = tls.RequireAnyClientCert, own.pool()
		config.VerifyPeerCertificate = func(chain [][]byte, _ [][]*x509.Certificate) error {
			leaf, err := x509.ParseCertificate(chain[0])
			if err == nil {
				_, err = leaf.Verify(x509.VerifyOptions{Roots: config.ClientCAs,
					KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			}
			return err
		}
		ca := filepath.Join(GinkgoT().TempDir(), "ca.pem")
		upstream := NewUpstreamOverTLS(config, apiKey)
		CertificateFiles{}.write(ca, "CERTIFICATE", config.Certificates[0].Certificate[0])
		Expect(tools(ctx,
			connecting(upstream.URL+"/mcp", service.ConnectConfig{CAFile: ca, CertFile: own.Cert, KeyFile: own.Key}))).
			To(HaveLen(3))
		notVerified(ctx, connecting(upstream.URL+"/mcp", service.ConnectConfig{CAFile: ca}))
	})

	It("reaches an upstream over https through the proxy, which sees no key", Label("U6"), func(ctx SpecContext) {
		files := NewCertificateFiles(1, time.Hour)
		proxy, upstream := NewEgressProxy(), NewUpstreamOverTLS(files.serverTLS(), apiKey)
		proxy.Password, proxy.site = "of-the-proxy", &ClientSite{server: upstream.Server}
		world := connecting(beyond+"/mcp", service.ConnectConfig{Proxy: proxy.URL(), CAFile: files.Cert})
		Expect(tools(ctx, world)).To(HaveLen(3))
		Expect(proxy.Connects.Load()).To(BeNumerically(">", 0))
		const wrong = "another-password"
		refused := connecting(beyond+"/mcp",
			service.ConnectConfig{CAFile: files.Cert,
				Proxy: (&EgressProxy{Password: wrong, server: proxy.server}).URL()})
		notVerified(ctx, refused)
		Expect(refused.Log.String()).To(And(ContainSubstring("the proxy answered 407"), Not(ContainSubstring(wrong))))
	})

	It("reaches an upstream over http directly", func(ctx SpecContext) {
		proxy := NewEgressProxy()
		Expect(tools(ctx, connecting(NewUpstream(apiKey).URL+"/mcp", service.ConnectConfig{Proxy: proxy.URL()}))).
			To(HaveLen(3))
		Expect(proxy.Connects.Load()).To(BeZero())
	})

	DescribeTable("is refused at the start when", func(ctx SpecContext, remedy string, args ...string) {
		workingFolder()
		write("empty.pem", "no certificate")
		ran := Run(ctx, append([]string{"gateway", "--dev", "--addr=127.0.0.1:0",
			"--upstream=http://127.0.0.1:9000/mcp"}, args...)...)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(And(ContainSubstring(remedy), Not(ContainSubstring("s3cret"))))
	},
		Entry("the authorities cannot be read", "--upstream-ca cannot be read", "--upstream-ca=missing.pem"),
		Entry("the file has no authority", "has no certificate in PEM", "--upstream-ca=empty.pem"),
		Entry("a certificate has no key", "--upstream-cert and upstream-key belong together",
			"--upstream-cert=empty.pem"),
		Entry("the certificate is none", "both must be PEM and belong together", "--upstream-cert=empty.pem",
			"--upstream-key=empty.pem"),
		Entry("the proxy is not a URL", "--upstream-proxy is not a URL of an HTTP proxy",
			"--upstream-proxy=socks5://me:s3cret@proxy.internal"),
	)
})

var _ = Describe("Observing the upstreams of a gateway", Label("gateway", "U21"), func() {
	It("reports one that gets no requests as degraded, and counts its requests", Label("U10"), func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		service := Operate(gatewayTo(upstream.URL + "/mcp"))
		service.Token = apiKey
		talk := service.Converse(ctx, stateless, service.NewClient().Connect(ctx).Access)
		Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3))
		upstream.Answer(failing(http.StatusServiceUnavailable, "text/plain", "restarting"))
		for range 6 {
			talk.Post(ctx, "tools/list", params{})
		}
		ready := service.AskAdmin(ctx, "/readyz")
		Expect(ready.StatusCode).To(Equal(http.StatusOK))
		Expect(ready.Text).
			To(And(ContainSubstring(`"status":"degraded"`), ContainSubstring("it has failed 5 times in a row")))
		metrics := service.AskAdmin(ctx, "/metrics").Text
		series := `http_client_request_duration_seconds_count{error_type="%s",http_request_method="POST",` +
			`http_response_status_code="%s",resource="` + service.MCP() + `"} %s`
		Expect(metrics).
			To(And(ContainSubstring(fmt.Sprintf(series, "", "200", "1")),
				ContainSubstring(fmt.Sprintf(series, "503", "503", "5"))))
	})
})
