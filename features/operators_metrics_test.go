package features_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

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
				r, err := http.NewRequestWithContext(ctx, method, service.Issuer+path, http.NoBody)
				Expect(err).NotTo(HaveOccurred())
				r.Host, r.Header = "hostile-9.example",
					http.Header{"User-Agent": {"hostile-10"}, "X-Forwarded-For": {"192.0.2.11"}}
				Send(r)
			}
		}
		text := service.AskAdmin(ctx, "/metrics").Text
		Expect(text).NotTo(ContainSubstring("hostile"))
		Expect(text).To(And(ContainSubstring(`http_request_method="_OTHER"`), ContainSubstring(`http_route=""`)))
		for _, label := range []string{"http_request_method", "http_route"} {
			Expect(valuesOf(text, label)).To(HaveEach(BeElementOf("_OTHER", "GET", "PUT", "POST", "",
				"/mcp", "/mcp/*", "/.well-known/oauth-protected-resource/*", "/oauth/token", "/oauth/authorize")),
				label)
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

// valuesOf returns the values of a label.
func valuesOf(text, label string) (values []string) {
	for _, found := range regexp.MustCompile(label+`="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		values = append(values, found[1])
	}
	return values
}
