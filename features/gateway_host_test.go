package features_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// behindName refuses every other Host in front of an upstream, like the DNS rebinding protection of
// MCP servers.
func behindName(upstream *UpstreamServer, host string, refusal http.HandlerFunc) string {
	GinkgoHelper()
	to, err := url.Parse(upstream.URL)
	Expect(err).NotTo(HaveOccurred())
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
