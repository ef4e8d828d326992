package features_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// operateChecked serves a gateway until the first check of its upstream has ended, and returns its
// report.
func operateChecked(ctx context.Context, address string, adjust ...func(*service.Config)) (*Operated,
	service.UpstreamStatus) {
	GinkgoHelper()
	checked := make(chan []service.UpstreamStatus, 1)
	gateway := Operate(append([]func(*service.Config){gatewayTo(address), func(config *service.Config) {
		config.UpstreamsChecked = func(all []service.UpstreamStatus) { checked <- all }
	}}, adjust...)...)
	gateway.Token = apiKey
	var reports []service.UpstreamStatus
	Eventually(checked).WithContext(ctx).WithTimeout(patience).Should(Receive(&reports))
	Expect(reports).NotTo(BeEmpty())
	return gateway, reports[0]
}

// diagnose runs doctor with the admin listener of the service.
func (o *Operated) diagnose(ctx context.Context) Diagnosis {
	GinkgoHelper()
	return Diagnose(ctx, o.MCP(), "--admin-addr", strings.TrimPrefix(o.Admin, "http://"))
}

// upstreamAnswering returns the address of a server that answers every request like that.
func upstreamAnswering(answer http.HandlerFunc) func() string {
	return func() string {
		upstream := NewUpstream()
		upstream.Answer(answer)
		return upstream.URL + "/mcp"
	}
}

func upstreamAt(address string) *UpstreamServer {
	GinkgoHelper()
	return startUpstream(bearerOf, []string{apiKey}, func(s *httptest.Server) {
		listener := must(net.Listen("tcp", address))
		Expect(s.Listener.Close()).To(Succeed())
		s.Listener = listener
		s.Start()
	})
}

const (
	pageOfOutage  = "The server behind this page does not answer at the moment"
	pageOfMistake = "The server behind this page is not set up correctly"
)

var _ = Describe("Checking the upstreams of a gateway", Label("gateway", "U31"), func() {
	DescribeTable("names the cause and the remedy at the start, in /readyz, the metrics, the admin page and doctor, "+
		"and warns on the consent page, when the upstream", Label("U33", "doctor"),
		func(ctx SpecContext, address func() string, state, cause, remedy, onPage string) {
			service, report := operateChecked(ctx, address())
			Expect(report.State.String()).To(MatchRegexp("^" + cause + ".*: " + remedy))
			Expect(linesWith(service.Log.String(), "an upstream does not work")).
				To(ConsistOf(And(ContainSubstring(`"level":"WARN"`), ContainSubstring(`"state":"`+state))))

			ready := service.AskAdmin(ctx, "/readyz")
			Expect(ready.StatusCode).To(Equal(http.StatusOK))
			Expect(ready.Text).To(And(ContainSubstring(`"status":"degraded"`), MatchRegexp(`"problem":"`+cause),
				ContainSubstring(`"state":"`+state), MatchRegexp(`"remedy":"`+remedy)))
			Expect(service.AskAdmin(ctx, "/").Text).To(And(MatchRegexp(cause), MatchRegexp("Remedy: "+remedy)))
			Expect(service.AskAdmin(ctx, "/metrics").Text).To(And(
				ContainSubstring(fmt.Sprintf("pasteport_upstream_up{resource=%q} 0\n", service.MCP())),
				ContainSubstring(fmt.Sprintf("pasteport_upstream_state{resource=%q,state=%q} 1\n",
					service.MCP(), state))))

			diagnosis := service.diagnose(ctx)
			Expect(diagnosis.With("failed")).To(Equal([]string{"upstream"}), diagnosis.Out)
			Expect(diagnosis.Of("upstream")).
				To(And(HaveField("Seen", MatchRegexp("^"+cause)), HaveField("Fix", MatchRegexp("^"+remedy))))

			page := service.NewClient().Consent(ctx)
			Expect(page.Text).
				To(And(ContainSubstring(onPage), Not(ContainSubstring(strings.TrimSuffix(address(), "/mcp")))))
			Expect(service.NewClient().Consent(ctx).Text).To(ContainSubstring(onPage), "it does not forget")
		},
		Entry("is dead", func() string { return "http://" + freeAddress() + "/mcp" }, "down",
			`it cannot be reached: dial tcp \S+ connect: connection refused`,
			"start the MCP server, or correct upstream", pageOfOutage),
		Entry("is at another path", upstreamAnswering(http.NotFound), "misconfigured",
			"it answered 404 to initialize, and not as an MCP server",
			"set upstream to the full URL of the MCP endpoint", pageOfMistake),
		Entry("is a page for people",
			upstreamAnswering(failing(http.StatusOK, "text/html; charset=utf-8", "<h1>Sign in</h1>")), "misconfigured",
			"it answered with an HTML page", "set upstream to the full URL of the MCP endpoint", pageOfMistake),
		Entry("checks no keys", func() string { return NewUpstream().URL + "/mcp" }, "misconfigured",
			"it accepts any token", "let the server check tokens, or choose another verifier", pageOfMistake),
		Entry("refuses the host name", upstreamAnswering(pythonRefusal), "misconfigured",
			"it refuses the host name of the request with 421", "set upstream-host", pageOfMistake),
		Entry("has a certificate of an unknown authority", func() string {
			return NewUpstreamOverTLS(NewCertificateFiles(1, time.Hour).serverTLS(), apiKey).URL + "/mcp"
		}, "misconfigured",
			"its certificate is not trusted: x509: certificate signed by unknown authority",
			"set upstream-ca", pageOfMistake),
		Entry("redirects", upstreamAnswering(redirected), "misconfigured",
			"it redirects to the same address with a slash at the end of its path, which is not followed",
			"set upstream to the address of the MCP server itself", pageOfMistake),
		Entry("is slow", upstreamAnswering(hanging), "down", "it did not answer in time", "read its log", pageOfOutage),
	)
})

var _ = Describe("Judging what an upstream answers", Label("gateway", "U31"), func() {
	credential := func(kind string) func(context.Context, *service.Config) {
		return func(ctx context.Context, c *service.Config) {
			static(ada(apiKey))(c)
			if c.Gateway.Credential = kind; kind == bootstrap.CredentialNone {
				c.Gateway.Secret, c.Gateway.SigningSecret = "", ""
			}
		}
	}
	verifying := func(ctx context.Context, c *service.Config) { ofItself()(c) }
	asItIs := func(context.Context, *service.Config) {}
	through := func(proxy func() string) func(context.Context, *service.Config) {
		return func(_ context.Context, c *service.Config) {
			c.Gateway.Connect.Proxy = must(url.Parse(proxy()))
		}
	}
	of := func(path string, keys ...string) func() string {
		return func() string { return NewUpstream(keys...).URL + path }
	}

	DescribeTable("finds", func(ctx SpecContext, address func() string, adjust func(context.Context, *service.Config),
		state string, works bool) {
		service, report := operateChecked(ctx, address(), func(c *service.Config) { adjust(ctx, c) })
		Expect(string(report.State.State)).To(Equal(state))
		Expect(service.AskAdmin(ctx, "/readyz").Text).
			To(ContainSubstring(map[bool]string{true: `"status":"ok"`, false: `"status":"degraded"`}[works]))
	},
		Entry("that it refuses unknown keys", of("/mcp", apiKey), asItIs, "refuses", true),
		Entry("that it checks no keys where another verifier does", of("/mcp"), verifying, "works", true),
		Entry("that it accepts the secret for all callers", of("/mcp", apiKey), credential(bootstrap.CredentialStatic),
			"works", true),
		Entry("that it refuses the secret for all callers", of("/mcp", "another-key"),
			credential(bootstrap.CredentialStatic), "misconfigured", false),
		Entry("that it needs no key", of("/mcp"), credential(bootstrap.CredentialNone), "works", true),
		Entry("that it requires a key", of("/mcp", apiKey), credential(bootstrap.CredentialNone),
			"misconfigured", false),
		Entry("that it is unavailable",
			upstreamAnswering(failing(http.StatusServiceUnavailable, "text/plain", "restarting")), asItIs,
			"down", false),
		Entry("that it hangs up", upstreamAnswering(func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), asItIs, "down", false),
		Entry("that it refuses everything", upstreamAnswering(failing(http.StatusForbidden, "text/plain", "no")),
			asItIs, "refuses", true),
		Entry("a proxy that cannot be reached", Label("U20"), func() string {
			return beyond + "/mcp"
		}, through(func() string { return "http://" + freeAddress() }), "misconfigured", false),
		Entry("a proxy that requires another password", Label("U20"), func() string {
			return beyond + "/mcp"
		}, through(func() string {
			proxy := NewEgressProxy()
			proxy.Password = "of-the-proxy"
			return (&EgressProxy{Password: "another", server: proxy.server}).URL().String()
		}), "misconfigured", false),
		Entry("that it does not speak TLS", func() string {
			return strings.Replace(NewUpstream(apiKey).URL, "http", "https", 1) + "/mcp"
		}, asItIs, "misconfigured", false),
	)

	It("finds that it supports only HTTP+SSE, although it answers 401 without a key",
		Label("U13"), func(ctx SpecContext) {
			_, report := operateChecked(ctx, NewUpstream(apiKey).URL+"/sse", func(c *service.Config) {
				credential(bootstrap.CredentialStatic)(ctx, c)
			})
			Expect(string(report.State.State)).To(Equal("misconfigured"))
			Expect(report.State.String()).To(Equal("it speaks HTTP+SSE of 2024-11-05: run it with Streamable HTTP"))
		})

	DescribeTable("names a problem of TLS other than the authority:",
		Label("U20"), func(ctx SpecContext, life time.Duration, demand tls.ClientAuthType, cause string) {
			files := NewCertificateFiles(1, life)
			config := files.serverTLS()
			config.ClientAuth = demand
			_, report := operateChecked(ctx, NewUpstreamOverTLS(config, apiKey).URL+"/mcp", func(c *service.Config) {
				c.Gateway.Connect.CAFile = files.Cert
			})
			Expect(string(report.State.State)).To(Equal("misconfigured"))
			Expect(report.State.String()).
				To(And(ContainSubstring(cause), ContainSubstring("set upstream-cert if it requires one")))
		},
		Entry("it requires a certificate of the gateway", time.Hour, tls.RequireAnyClientCert, "certificate required"),
		Entry("its certificate has expired", -time.Second, tls.NoClientCert,
			"certificate has expired or is not yet valid"),
	)

	It("presents a random key as calls do, with the Host of calls, and ends the session that the server opens",
		Label("U18"), func(ctx SpecContext) {
			upstream := NewUpstream()
			_, report := operateChecked(ctx, upstream.URL+"/mcp?team=s3cret", func(c *service.Config) {
				verifying(ctx, c)
				c.Gateway.Present, c.Gateway.Host = []string{"X-Api-Key: {token}"}, "localhost:9000"
			})
			Expect(report.State.IsProblem()).To(BeFalse())
			Expect(report.Name).To(Equal(upstream.URL))
			Expect(upstream.Wire()).To(And(MatchRegexp(
				`(?s)^POST /mcp\?team=s3cret HTTP/1.1\r\nHost: localhost:9000\r\n.*X-Api-Key: `+
					`pasteport-probe-[^\n]+.*"method":"initialize"`),
				ContainSubstring("DELETE /mcp?team=s3cret HTTP/1.1"), Not(ContainSubstring("Authorization"))))
		})

	It("sends no more keys while the server refuses requests without one, so that it is not locked out",
		func(ctx SpecContext) {
			upstream := NewUpstream(apiKey)
			service, _ := operateChecked(ctx, upstream.URL+"/mcp")
			for range 3 {
				Expect(service.service.CheckUpstreams(ctx)).
					To(ConsistOf(HaveField("State.State", BeEquivalentTo("refuses"))))
			}
			Expect(strings.Count(upstream.Wire(), "pasteport-probe-")).To(Equal(1))
		})

	It("reports that a server works again after it has started, and logs only the changes",
		Label("U33"), func(ctx SpecContext) {
			address := freeAddress()
			service, _ := operateChecked(ctx, "http://"+address+"/mcp")
			service.service.CheckUpstreams(ctx)
			Expect(service.NewClient().Consent(ctx).Text).To(ContainSubstring(pageOfOutage))
			upstreamAt(address)
			service.service.CheckUpstreams(ctx)
			Expect(service.AskAdmin(ctx, "/readyz").Text).To(And(ContainSubstring(`"status":"ok"`), ContainSubstring(
				`"detail":"reachable, refuses unknown keys, sent as bearer token in the header Authorization"`)))
			Expect(service.AskAdmin(ctx, "/metrics").Text).
				To(ContainSubstring(fmt.Sprintf("pasteport_upstream_up{resource=%q} 1\n", service.MCP())))
			page := service.NewClient().Consent(ctx)
			Expect(page.Text).NotTo(ContainSubstring(pageOfOutage))
			Expect(page.Approve(ctx, apiKey).StatusCode).To(Equal(http.StatusSeeOther))
			Expect(linesWith(service.Log.String(), "an upstream does not work")).To(HaveLen(1))
			Expect(linesWith(service.Log.String(), "an upstream works again")).To(HaveLen(1))
		})

	It("names the cause and the remedy to the person whose token cannot be checked",
		Label("B9", "B24"), func(ctx SpecContext) {
			dead, _ := operateChecked(ctx, "http://"+freeAddress()+"/mcp")
			Expect(dead.NewClient().Consent(ctx).Approve(ctx, apiKey)).
				To(And(HaveField("StatusCode", http.StatusServiceUnavailable), HaveField("Text", And(
					ContainSubstring("This site cannot check tokens just now."),
					ContainSubstring("If this lasts, tell the people who run it."), ContainSubstring(pageOfOutage)))))
			elsewhere, _ := operateChecked(ctx, upstreamAnswering(redirected)())
			Expect(elsewhere.NewClient().Consent(ctx).Approve(ctx, apiKey)).
				To(And(HaveField("StatusCode", http.StatusServiceUnavailable), HaveField("Text", And(
					ContainSubstring("because of a mistake in its configuration"),
					ContainSubstring("tell the people who run it"), ContainSubstring(pageOfMistake)))))
		})

	It("looks for a program, and does not start it", Label("U22"), func(ctx SpecContext) {
		to := stdioProgram()
		_, report := operateChecked(ctx, "", toProgram(to, peopleOfPrograms(ctx)))
		Expect(report.Name).To(Equal("stdio: " + to.Command))
		Expect(report.State.String()).To(Equal("the program was found at " + to.Command + "; each session starts it"))
	})
})

var _ = Describe("Asking doctor about the upstreams of a gateway", Label("gateway", "doctor", "U31"), func() {
	It("does not fail for a neighbour that does not work", func(ctx SpecContext) {
		service, _ := operateChecked(ctx, NewUpstream(apiKey).URL+"/mcp", func(config *service.Config) {
			config.Gateway.Upstreams = append(config.Gateway.Upstreams,
				serverAt("/down", "http://127.0.0.1:1/mcp"))
		})
		d := service.diagnose(ctx)
		Expect(d.Of("upstream").Status).To(Equal("ok"))
		Expect(d.Code).To(BeZero())
	})

	It("names the remedy of one that may refuse the gateway, although people with a key may be able to connect",
		func(ctx SpecContext) {
			service, _ := operateChecked(ctx, upstreamAnswering(failing(http.StatusForbidden, "text/plain", "no"))())
			found := service.diagnose(ctx).Of("upstream")
			Expect(found).To(And(HaveField("Status", "ok"),
				HaveField("Seen", ContainSubstring("allow the address of the gateway"))))
		})

	DescribeTable("skips the check and states what to do", func(ctx SpecContext, admin func() string, reason string) {
		d := Diagnose(ctx, NewWorld().MCP(), "--admin-addr", admin())
		skipped := d.Of("upstream")
		Expect(skipped).To(And(HaveField("Status", "skipped"), HaveField("Seen", ContainSubstring(reason))))
	},
		Entry("without an admin listener", func() string {
			return "off"
		}, "admin-addr is off: give the gateway an admin listener"),
		Entry("when nothing answers there", freeAddress, "connection refused): if this server is a pasteport "+
			"gateway, run doctor on its computer, or name the address of its admin listener with --admin-addr"),
		Entry("when the listener is of another service", func() string {
			return strings.TrimPrefix(Operate().Admin, "http://")
		}, "has no upstream for this URL"),
		Entry("when another server answers", func() string {
			return strings.TrimPrefix(NewUpstream(apiKey).URL, "http://")
		}, "it answered 401 Unauthorized and is not an admin listener of pasteport"),
	)

	It("asks for a public URL too", func(ctx SpecContext) {
		public := "https://" + net.JoinHostPort(outside(), "1")
		service, _ := operateChecked(ctx, NewUpstream(apiKey).URL+"/mcp", func(config *service.Config) {
			config.Issuer, config.Development = public, false
		})
		admin := strings.TrimPrefix(service.Admin, "http://")
		Expect(Diagnose(ctx, public+"/mcp", "--timeout", "1s", "--admin-addr", admin).Of("upstream")).
			To(HaveField("Seen", "reachable, refuses unknown keys, sent as bearer token in the header Authorization"))
	})
})
