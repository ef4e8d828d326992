package features_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// Decisions are the logged audit events with their reasons, in order.
func (w *World) Decisions() (events []string) {
	GinkgoHelper()
	for line := range strings.Lines(w.Log.String()) {
		var entry struct{ Msg, Reason string }
		Expect(json.Unmarshal([]byte(line), &entry)).To(Succeed(), line)
		if !strings.Contains(entry.Msg, " ") && entry.Msg != "request" && entry.Msg != "refused" {
			events = append(events, strings.TrimSpace(entry.Msg+" "+entry.Reason))
		}
	}
	return events
}

var _ = Describe("Audit log", Label("H8"), func() {
	It("logs each decision once, by name", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		client.AskFor(ctx, client.Request())
		lost := world.NewClient()
		lost.ID += "x"
		lost.AskFor(ctx, lost.Request())
		client.Consent(ctx).Deny(ctx)
		page := client.Consent(ctx)
		page.Approve(ctx, "demo_wrong")
		code := page.Approve(ctx, world.Token).Target().Query().Get("code")
		client.Token(ctx, client.Exchange(code))
		client.Token(ctx, client.Exchange(code))
		world.Clock.Advance(11 * time.Second)
		client.Token(ctx, client.Exchange(code))
		tokens := client.Connect(ctx)
		next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		client.Token(ctx, client.Refresh(next.Refresh))
		world.Clock.Advance(6 * time.Minute)
		client.Token(ctx, client.Refresh(tokens.Refresh))
		client.Revoke(ctx, client.Connect(ctx).Refresh)
		Expect(world.Decisions()).To(Equal([]string{
			"cimd_rejected oauth: fetch the client metadata document: the response is not a document: the " +
				"status of the response is 404", "consent_denied", "host_token_rejected",
			"grant_created", "code_redeemed", "code_retried", "grant_ended code_replayed",
			"grant_created", "code_redeemed", "refreshed", "refreshed", "grant_ended refresh_reused",
			"grant_created", "code_redeemed", "grant_ended revoked_by_client",
		}))
	})
})

// jsonLines parses each line as a JSON object, and fails for any other line.
func jsonLines(text string) (lines []map[string]any) {
	GinkgoHelper()
	for line := range strings.Lines(text) {
		var fields map[string]any
		Expect(json.Unmarshal([]byte(line), &fields)).To(Succeed(), line)
		lines = append(lines, fields)
	}
	return lines
}

var _ = Describe("Starting a service", func() {
	It("says nothing of the connections that it can hold, except at level debug", func() {
		Expect(NewWorld().Log.String()).NotTo(MatchRegexp(`"INFO".*limiting the connections`))
	})
})

var _ = Describe("JSON log lines", Label("operations"), func() {
	run := func(args ...string) *gexec.Session {
		base := []string{"--dev", "--log-format", "json", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
			"--data", GinkgoT().TempDir()}
		return BuildBinary().Run(nil, append(args, base...)...)
	}

	It("are all that the demo site prints at its start", func(SpecContext) {
		service := run("serve")
		Eventually(service.Out).WithTimeout(patience).Should(gbytes.Say(`"msg":"this is the demo site`))
		Expect(service.Terminate().Wait(patience).ExitCode()).To(Equal(0))
		lines := jsonLines(string(service.Out.Contents()))
		for _, beginning := range []string{
			"demo token: ", "serving http://127.0.0.1:", "  Claude Code    claude mcp add ", "grants, connections",
		} {
			Expect(lines).To(ContainElement(HaveKeyWithValue("msg", HavePrefix(beginning))))
		}
		jsonLines(string(service.Err.Contents()))
	}, SpecTimeout(time.Minute))

	It("are all that a gateway prints at its start, with the state of its upstream", func(SpecContext) {
		service := run("gateway", "--upstream", "http://127.0.0.1:1/mcp")
		Eventually(service.Out).WithTimeout(patience).
			Should(gbytes.Say(`"msg":"warning: upstream http://127\.0\.0\.1:1: `))
		Expect(service.Terminate().Wait(patience).ExitCode()).To(Equal(0))
		jsonLines(string(service.Out.Contents()))
		jsonLines(string(service.Err.Contents()))
	}, SpecTimeout(time.Minute))

	DescribeTable("have the error of a start that fails:", func(problem string, args ...string) {
		service := run(append([]string{"serve"}, args...)...)
		Expect(service.Wait(patience).ExitCode()).To(Equal(1))
		lines := jsonLines(string(service.Err.Contents()))
		Expect(lines).To(ContainElement(And(HaveKeyWithValue("level", "ERROR"),
			HaveKeyWithValue("error", ContainSubstring(problem)))))
	},
		Entry("a mistake in a setting", "audit-arguments is set, but neither", "--audit-arguments"),
		Entry("a file that cannot be opened", "opening the audit file", "--audit-file", "/dev/null/calls.jsonl"),
	)
})

var _ = Describe("A duration in the log", Label("operations", "audit"), func() {
	It("has its unit in the key", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.Audit.Log = true })
		Expect(world.Call(ctx, world.NewClient().Connect(ctx).Access).StatusCode).To(Equal(200))
		for _, message := range []string{"request", "call"} {
			var found []map[string]any
			for _, line := range jsonLines(world.Log.String()) {
				if line["msg"] == message {
					found = append(found, line)
				}
			}
			Expect(found).NotTo(BeEmpty())
			Expect(found).To(HaveEach(And(HaveKeyWithValue("duration_ms", BeAssignableToTypeOf(1.5)),
				Not(HaveKey("duration")))))
		}
	})
})

// Metrics returns the series of a scrape without their values.
func (o *Operated) Metrics(ctx context.Context) (series []string) {
	GinkgoHelper()
	answer := o.AskAdmin(ctx, "/metrics")
	Expect(answer.StatusCode).To(Equal(http.StatusOK))
	for line := range strings.Lines(answer.Text) {
		if name, _, found := strings.Cut(line, "} "); found {
			series = append(series, name+"}")
		}
	}
	return series
}

// route matches the request counter of a route.
func route(method, route, status string) string {
	return `http_server_request_duration_seconds_count{http_request_method="` + method +
		`",http_response_status_code="` + status + `",http_route="` + route + `"}`
}

var _ = Describe("Metrics of a service", Label("operations"), func() {
	It("counts requests by method, route and status, and running requests", func(ctx SpecContext) {
		service := Operate()
		service.Call(ctx, service.NewClient().Connect(ctx).Access)
		Expect(service.Metrics(ctx)).To(ContainElements(
			route("GET", "/oauth/authorize", "200"), route("POST", "/oauth/authorize", "303"),
			route("POST", "/oauth/token", "200"), route("POST", "/mcp", "200"),
			`http_server_active_requests{http_request_method="POST"}`,
		))
	})

	It("counts decisions, with zero for those that have not occurred", func(ctx SpecContext) {
		service := Operate()
		client := service.NewClient()
		client.Token(ctx, client.Refresh(client.Connect(ctx).Refresh))
		Expect(service.AskAdmin(ctx, "/metrics").Text).To(And(
			ContainSubstring(`pasteport_decisions_total{event="grant_created"} 1`),
			ContainSubstring(`pasteport_decisions_total{event="code_redeemed"} 1`),
			ContainSubstring(`pasteport_decisions_total{event="refreshed"} 1`),
			ContainSubstring(`pasteport_decisions_total{event="grant_ended"} 0`)))
	})

	It("includes the metrics of the Go runtime and the process", func(ctx SpecContext) {
		Expect(Operate().AskAdmin(ctx, "/metrics").Text).To(And(
			MatchRegexp(`(?m)^go_goroutines \d`), MatchRegexp(`(?m)^process_start_time_seconds \d`),
			MatchRegexp(`(?m)^go_build_info{`)))
	})

	It("has no label with values chosen by clients", func(ctx SpecContext) {
		service := Operate()
		service.Call(ctx, "")
		before := len(service.Metrics(ctx))
		for _, method := range []string{"BREW", "GETT", "get", "X-" + strings.Repeat("A", 200), http.MethodGet,
			http.MethodPut, http.MethodPost} {
			for _, path := range []string{"/hostile-1", "/oauth/hostile-2", "/mcp/hostile-3", "/.well-known/hostile-4",
				"/oauth/authorize/hostile-5", "/%68ostile-6", "/a//hostile-7?q=hostile-8", "/oauth/token"} {
				r := must(http.NewRequestWithContext(ctx, method, service.Issuer+path, http.NoBody))
				r.Host, r.Header = "hostile-9.example",
					http.Header{"User-Agent": {"hostile-10"}, "X-Forwarded-For": {"192.0.2.11"}}
				Send(r)
			}
		}
		text := service.AskAdmin(ctx, "/metrics").Text
		Expect(text).NotTo(ContainSubstring("hostile"))
		Expect(text).To(And(ContainSubstring(`http_request_method="_OTHER"`), ContainSubstring(`http_route=""`)))
		for _, label := range []string{"http_request_method", "http_route"} {
			for _, found := range regexp.MustCompile(label+`="([^"]*)"`).FindAllStringSubmatch(text, -1) {
				Expect(found[1]).To(BeElementOf("_OTHER", "GET", "PUT", "POST", "", "/mcp", "/mcp/*",
					"/.well-known/oauth-protected-resource/*", "/oauth/token", "/oauth/authorize"), label)
			}
		}
		Expect(len(service.Metrics(ctx))-before).To(BeNumerically("<", 700), "series, at 16 for each histogram")
	})

	It("holds no secret", func(ctx SpecContext) {
		service := Operate()
		client := service.NewClient()
		tokens := client.Connect(ctx)
		client.Token(ctx, client.Refresh(tokens.Refresh))
		Get(ctx, service.Issuer+"/oauth/authorize?"+url.Values{"bearer_token": {service.Token}}.Encode())
		text := service.AskAdmin(ctx, "/metrics").Text + service.AskAdmin(ctx, "/debug/pprof/goroutine?debug=2").Text
		for _, secret := range []string{tokens.Access, tokens.Refresh, service.Token, client.Verifier, client.State} {
			Expect(text).NotTo(ContainSubstring(secret))
		}
	})
})

// without removes the scheme, which an address does not have.
func without(scheme, url string) string { return strings.TrimPrefix(url, scheme) }

var _ = Describe("Checking the health of a service in a container", Label("operations", "deployment"), func() {
	It("succeeds when the service is ready", func(ctx SpecContext) {
		admin := without("http://", Operate().Admin)
		asked := Run(ctx, "health", "--admin-addr", admin)
		Expect(asked).To(Equal(Ran{0, "ready: http://" + admin + "/readyz\n", ""}))
	})

	It("succeeds when an upstream does not work, and names the problem", Label("U31"), func(ctx SpecContext) {
		service, _ := operateChecked(ctx, "http://"+freeAddress()+"/mcp")
		asked := Run(ctx, "health", "--admin-addr", without("http://", service.Admin))
		Expect(asked.Code).To(BeZero())
		Expect(asked.Out).To(MatchRegexp(`^degraded: http://\S+/readyz: upstream of ` + service.MCP() +
			`: it cannot be reached: `))
	})

	It("uses loopback when the service listens on all addresses", func(ctx SpecContext) {
		service := Operate(func(config *service.Config) { config.AdminAddr = ":0" })
		port := service.Admin[strings.LastIndex(service.Admin, ":"):]
		for _, everywhere := range []string{"", "0.0.0.0", "[::]"} {
			Expect(Run(ctx, "health", "--admin-addr", everywhere+port).Code).To(BeZero(), everywhere)
		}
	})

	It("reads the address from the settings of the service", func(ctx SpecContext) {
		admin := without("http://", Operate().Admin)
		file := filepath.Join(GinkgoT().TempDir(), "pasteport.yaml")
		Expect(os.WriteFile(file, []byte("admin-addr: "+admin+"\ndemo-token: file:/run/secrets/none\n"), 0o600)).
			To(Succeed())
		Expect(Run(ctx, "health", "--config", file).Code).To(BeZero())
		GinkgoT().Setenv("PASTEPORT_ADMIN_ADDR", admin)
		Expect(Run(ctx, "health").Code).To(BeZero())
	})

	It("fails and names the failed check", func(ctx SpecContext) {
		service := Operate()
		service.LoseSite()
		asked := Run(ctx, "health", "--admin-addr", without("http://", service.Admin))
		Expect(asked.Code).To(Equal(1))
		Expect(asked.Out).To(BeEmpty())
		Expect(asked.Err).
			To(MatchRegexp(`^pasteport: the service is not ready: demo site: reading the site: .*no such file`))
	})

	It("fails while the server secret is missing, because every consent page fails too",
		Label("A33"), func(ctx SpecContext) {
			service := Operate()
			secret := filepath.Join(service.Dir, "oauth.db.secret")
			Expect(os.Rename(secret, secret+".away")).To(Succeed())
			asked := Run(ctx, "health", "--admin-addr", without("http://", service.Admin))
			Expect(asked.Code).To(Equal(1))
			Expect(asked.Err).
				To(MatchRegexp(`^pasteport: the service is not ready: oauth database: reading the server secrets: ` +
					`.*no such file`))
			Expect(os.Rename(secret+".away", secret)).To(Succeed())
			Eventually(func() int {
				return Run(ctx, "health", "--admin-addr", without("http://", service.Admin)).Code
			}).WithTimeout(patience).Should(BeZero(), "an outcome stands for a second")
		})

	DescribeTable("fails", func(ctx SpecContext, args func() []string, code int, complaint string) {
		asked := Run(ctx, append([]string{"health"}, args()...)...)
		Expect(asked.Code).To(Equal(code))
		Expect(asked.Err).To(ContainSubstring(complaint))
	},
		Entry("when no service listens", func() []string {
			return []string{"--admin-addr", "127.0.0.1:1"}
		}, 1, `is "pasteport gateway" or "pasteport serve" running`),
		Entry("when the listener is off", func() []string {
			return []string{"--admin-addr", "off"}
		}, 1, "admin-addr is off"),
		Entry("when another server responds", func() []string {
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("hello"))
			}))
			DeferCleanup(other.Close)
			return []string{"--admin-addr", without("http://", other.URL)}
		}, 1, "is not an admin listener of pasteport"),
	)
})
