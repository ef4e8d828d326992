package features_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Starting a gateway", Label("gateway", "configuration"), func() {
	BeforeEach(func() { workingFolder() })
	const one = "--upstream=http://127.0.0.1:9000/mcp"

	DescribeTable("is refused, with the remedy, when", func(ctx SpecContext, remedy string, args ...string) {
		dir := filepath.Join(GinkgoT().TempDir(), "data")
		ran := Run(ctx, append([]string{"gateway", "--dev", "--addr=127.0.0.1:0", "--data=" + dir}, args...)...)
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(ContainSubstring(remedy))
		Expect(ran.Err).NotTo(ContainSubstring("s3cret"))
		Expect(dir).NotTo(BeADirectory())
	},
		Entry("there is no upstream", "add --upstream http://127.0.0.1:9000/mcp"),
		Entry("the upstream has no scheme",
			"--upstream: it has no scheme: begin it with https://, or with http:// on this computer",
			"--upstream=127.0.0.1:9000/s3cret"),
		Entry("the issuer ends like the path of the MCP server",
			`--issuer "http://localhost:8080/mcp" ends with /mcp, which is the path of the MCP endpoint below it`,
			one, "--issuer=http://localhost:8080/mcp"),
		Entry("the upstream has a password", "--upstream: it has a user or a fragment",
			"--upstream=http://me:s3cret@127.0.0.1/mcp"),
		Entry("tokens would cross the internet unencrypted",
			"--upstream: http is for this computer and private networks only", "--upstream=http://192.0.2.1/mcp"),
		Entry("the second upstream has no path",
			`--upstream: number 2 has no path: write it as "/path = URL"`, one, one),
		Entry("two upstreams have the same path", "is the same as", one, "--upstream=/mcp=http://127.0.0.1:9001/"),
		Entry("a path belongs to the gateway itself", "is an address of this server itself",
			"--upstream=/oauth/token=http://127.0.0.1:9001/"),
		Entry("a path has no URL", "write a list of MCP servers such as", "--upstream=/files"),
		Entry("static has no secret", `credential "static" needs it`, one, "--credential=static", "--verifier=http",
			"--verify-url=https://cms.example/"),
		Entry("static has a secret with characters not allowed in headers", "characters that no header can carry", one,
			"--credential=static", "--upstream-secret=s3cret\nx", "--signing-secret="+strings.Repeat("y", 32)),
		Entry("static signs with a short secret", "has to have 32 bytes or more", one, "--credential=static",
			"--upstream-secret=s3cret", "--signing-secret=s3cret2"),
		Entry("both secrets of static are the same", "to differ from the secret", one, "--credential=static",
			"--upstream-secret="+strings.Repeat("s3cret", 6), "--signing-secret="+strings.Repeat("s3cret", 6)),
		Entry("a secret would have no effect", `is set, but the credential is "host-token"`, one,
			"--upstream-secret=s3cret"),
		Entry("the verifier is the demo site", `only "pasteport serve" has a demo site`, one, "--verifier=site"),
		Entry("a tool requires an unknown scope", `--tool-scopes has "articles:write", which is not in scopes`, one,
			"--tool-scopes=delete_* = articles:write"),
		Entry("a tool pattern is malformed", "write a list of scopes such as", one, "--tool-scopes=[ = mcp"),
		Entry("the upstream timeout is too short", `is "500ms": write a duration such as 1h30m, from 1s to 1h`, one,
			"--upstream-timeout=500ms"),
		Entry("the verifier asks a server that needs no key", Label("U32"),
			`--credential is "none", but verifier is "upstream", and a server that needs no key accepts any token: `+
				`choose credential "host-token" or "static", or verifier "file"`, one, "--credential=none"),
		Entry("the verifier cannot tell the upstreams' keys apart", `cannot tell which upstream a key belongs to`, one,
			"--upstream=/files=http://127.0.0.1:9001/", "--verifier=http", "--verify-url=https://cms.example/"),
		Entry("a path has dot segments", "empty or dot segments", one, "--upstream=/a/../b=http://127.0.0.1:9001/"),
		Entry("a header must not be forwarded", `--forward-headers has "Cookie": it is never forwarded`, one,
			"--forward-headers=Cookie"),
	)

	It("is a separate command from the demo site", func(ctx SpecContext) {
		write("pasteport.yaml", "upstream:\n- http://127.0.0.1:9000/mcp\n")
		Expect(Run(ctx, "serve", "--dev", "--addr=127.0.0.1:0").Err).To(ContainSubstring(`run "pasteport gateway"`))
	})

	It("refuses gateway settings without an upstream", func(ctx SpecContext) {
		for _, setting := range []string{"tool-scopes=x = mcp", "present=X-Api-Key: {token}", "tools=allow *",
			"upstream-host=localhost:9000"} {
			name, _, _ := strings.Cut(setting, "=")
			Expect(Run(ctx, "config", "--dev", "--"+setting).Err).
				To(ContainSubstring("--" + name + " is set, but upstream is not"))
		}
		write("pasteport.yaml", "fields: [{name: token, label: Key}]\n")
		Expect(Run(ctx, "config", "--dev").Err).
			To(ContainSubstring("fields (from pasteport.yaml:1) is set, but upstream is not"))
		Expect(Run(ctx, "config", "--dev", "--verifier=upstream").Err).To(ContainSubstring("there is no upstream"))
	})

	It("shows the effective settings", func(ctx SpecContext) {
		shown := Run(ctx, "config", "--issuer=https://mcp.example.com", "--upstream=/files = http://127.0.0.1:9000/mcp")
		Expect(shown.Code).To(BeZero(), shown.Err)
		Expect(shown.Out).
			To(And(ContainSubstring("verifier: upstream"), ContainSubstring("resource: https://mcp.example.com/files"),
				ContainSubstring("/files = http://127.0.0.1:9000/mcp")))
	})

	It("is ready without a demo site", func(ctx SpecContext) {
		service, _ := operateChecked(ctx, NewUpstream(apiKey).URL+"/mcp")
		Expect(service.AskAdmin(ctx, "/readyz").Text).
			To(MatchJSON(`{"status":"ok","checks":[{"name":"serving"},{"name":"oauth database"},` +
				`{"name":"proxies"},{"name":"upstream of ` + service.MCP() +
				`","state":"refuses","detail":` +
				`"reachable, refuses unknown keys, sent as bearer token in the header Authorization"}]}`))
	})
})

var _ = Describe("Running a gateway", Label("gateway"), func() {
	It("works in the built program, without a demo site", func(ctx SpecContext) {
		upstream, clients, dir := NewUpstream(apiKey), NewClientSite(), filepath.Join(GinkgoT().TempDir(), "data")
		run := BuildBinary().Run([]string{"SSL_CERT_FILE=" + clients.Certificate()},
			"gateway", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--data", dir, "--upstream",
			upstream.URL+"/mcp")
		Eventually(run.Out).WithTimeout(patience).Should(gbytes.Say(
			`serving (http://127\.0\.0\.1:\d+) on .*\n` +
				`next: connect an MCP client to http://127\.0\.0\.1:\d+/mcp\n`))
		_, rest, _ := strings.Cut(string(run.Out.Contents()), "serving ")
		issuer, _, _ := strings.Cut(rest, " ")
		world := &World{
			Issuer:  issuer,
			Dir:     dir,
			Clients: clients,
			Token:   apiKey,
		}
		Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
		Expect(filesIn(dir)).To(And(ContainElement("oauth.db"), Not(ContainElement("site.json"))))
		Eventually(run.Interrupt()).WithTimeout(patience).Should(gexec.Exit(0))
	}, SpecTimeout(5*time.Minute))
})

func (f CertificateFiles) serverTLS() *tls.Config {
	GinkgoHelper()
	pair := must(tls.LoadX509KeyPair(f.Cert, f.Key))
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
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
		config.ClientAuth, config.ClientCAs = tls.RequireAnyClientCert, x509.NewCertPool()
		Expect(config.ClientCAs.AppendCertsFromPEM(must(os.ReadFile(own.Cert)))).To(BeTrue())
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
		Expect(metrics).To(And(ContainSubstring(fmt.Sprintf(series, "", "200", "1")),
			ContainSubstring(fmt.Sprintf(series, "503", "503", "5"))))
	})
})

// behindName refuses every other Host in front of an upstream, like the DNS rebinding protection of
// MCP servers.
func behindName(upstream *UpstreamServer, host string, refusal http.HandlerFunc) string {
	GinkgoHelper()
	to := must(url.Parse(upstream.URL))
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}
	guard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != host {
			refusal(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(func() {
		guard.CloseClientConnections()
		guard.Close()
	})
	return guard.URL
}

var (
	pythonRefusal = failing(http.StatusMisdirectedRequest, "text/plain; charset=utf-8", "Invalid Host header")
	goRefusal     = failing(http.StatusForbidden, "text/plain; charset=utf-8", "Forbidden: invalid Host header\n")
	scriptRefusal = failing(http.StatusForbidden, "application/json",
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Invalid Host: 127.0.0.1"},"id":null}`)
)

var _ = Describe("A gateway to a server with a Host check", Label("gateway", "U9", "U14"), func() {
	const advice = "set upstream-host to a name that it allows"
	refusals := []TableEntry{
		Entry("Python", pythonRefusal), Entry("Go", goRefusal), Entry("TypeScript", scriptRefusal),
	}

	DescribeTable("explains why a pasted key cannot be checked, and names the setting, for the SDK in",
		func(ctx SpecContext, refusal http.HandlerFunc) {
			world := NewGateway(behindName(NewUpstream(apiKey), "localhost:8000", refusal) + "/mcp")
			Expect(world.NewClient().Consent(ctx).Approve(ctx, apiKey).StatusCode).
				To(Equal(http.StatusServiceUnavailable))
			Eventually(world.Stories).WithContext(ctx).WithTimeout(patience).
				Should(ContainElement(HaveField("Says", ContainSubstring(advice))))
		}, refusals)

	DescribeTable("explains why a call fails, and names the setting, for the SDK in",
		func(ctx SpecContext, refusal http.HandlerFunc) {
			upstream := NewUpstream(apiKey)
			world := NewGateway(upstream.URL + "/mcp")
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			upstream.Answer(refusal)
			Expect(talk.Post(ctx, "tools/list", params{})).
				To(haveFailed(http.StatusBadGateway, "does not accept the host name of its requests"))
			Expect(world.Log.String()).To(ContainSubstring(advice))
			Eventually(world.Stories).WithContext(ctx).WithTimeout(patience).
				Should(ContainElement(HaveField("Says", ContainSubstring("upstream-host"))))
			upstream.Answer(nil)
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3), "the grant is active")
		}, refusals)

	DescribeTable("sends the Host of upstream-host for key checks and calls, in revision",
		func(ctx SpecContext, path, revision string) {
			address := behindName(NewUpstream(apiKey), "localhost:8000", pythonRefusal) + path
			world := NewGateway(address, func(c *service.Config) { c.Gateway.Host = "localhost:8000" })
			talk := world.Converse(ctx, revision, world.NewClient().Connect(ctx).Access)
			Expect(talk.Use(ctx, "shout", params{"text": "hello"}).Text()).To(Equal("HELLO"))
		},
		Entry(stateless, "/mcp", stateless), Entry(sessions, "/mcp", sessions),
	)

	It("reads upstream-host from a flag, a variable or the file", func(ctx SpecContext) {
		workingFolder()
		args := []string{"config", "--issuer=https://mcp.example.com", "--upstream=http://127.0.0.1:9000/mcp"}
		Expect(Run(ctx, append(args, "--upstream-host=localhost:9000")...).Out).
			To(MatchRegexp(`upstream-host: .?localhost:9000`))
		Expect(Run(ctx, append(args, "--upstream-host=http://localhost:9000/")...).Err).
			To(ContainSubstring(`--upstream-host has "http://localhost:9000/": write host or host:port`))
	}, SpecTimeout(time.Minute))
})
