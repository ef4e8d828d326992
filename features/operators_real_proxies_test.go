package features_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/types"
)

// beats is the number of comments to wait for: long enough for a proxy that closes silent streams
// after a minute.
const (
	beats     = 3
	beatEvery = 25 * time.Second
)

// readLines sends non-empty lines until the end of the stream or of the context.
func readLines(ctx context.Context, from io.ReadCloser, lines chan<- string) {
	defer close(lines)
	defer func() { _ = from.Close() }()
	for scanner := bufio.NewScanner(from); scanner.Scan(); {
		if scanner.Text() == "" {
			continue
		}
		select {
		case lines <- scanner.Text():
		case <-ctx.Done():
			return
		}
	}
}

// next waits for the next line of a stream, which must have this prefix.
func next(lines <-chan string, begins string, within time.Duration) (line string) {
	GinkgoHelper()
	Eventually(lines).WithTimeout(within).Should(Receive(&line))
	Expect(line).To(HavePrefix(begins))
	return line[len(begins):]
}

func (d *Deployed) openStreams(ctx context.Context, n string) {
	GinkgoHelper()
	Eventually(func() string { return d.AskAdmin(ctx, "/metrics").Text }).WithContext(ctx).WithTimeout(patience).
		Should(ContainSubstring("\npasteport_mcp_streams " + n + "\n"))
}

// examine runs doctor with a whole login.
func (d *Deployed) examine(ctx context.Context) Diagnosis {
	GinkgoHelper()
	return Diagnose(ctx, d.MCP(), "--token", d.Token, "--ca", d.authorities, "--timeout", "3s")
}

var _ = Describe("Running behind a real proxy", Ordered, ContinueOnFailure, Label("proxies"), func() {
	var binary Binary
	BeforeAll(func() {
		asked("caddy")
		asked("nginx")
		binary = BuildBinary()
	})

	DescribeTableSubtree("with the example for", func(proxy Proxy) {
		It("works with the Go SDK's client", func(ctx SpecContext) {
			d := Deploy(binary, proxy, "127.0.0.1")
			client := d.NewSDKClient()
			for _, revision := range []string{batching, headers, sessions, stateless} {
				ListAndCall(ctx, client.Connect(ctx, revision))
			}
			Expect(client.Logins.Load()).To(BeEquivalentTo(1))
		}, SpecTimeout(time.Minute))

		It("passes all checks of doctor", func(ctx SpecContext) {
			diagnosis := Deploy(binary, proxy, "127.0.0.1").examine(ctx)
			Expect(diagnosis.With("failed")).To(BeEmpty(), diagnosis.Out)
			Expect(diagnosis.Of("stream").Status).To(Equal("ok"))
		}, SpecTimeout(time.Minute))

		It("works with a gateway too, and cancels upstream requests when a client disconnects",
			Label("gateway", "U4"), func(ctx SpecContext) {
				upstream := NewUpstream(apiKey)
				d := DeployGateway(binary, upstream, proxy)
				Expect(d.examine(ctx).With("failed")).To(BeEmpty())
				talk := d.Converse(ctx, stateless, d.NewClient().Connect(ctx).Access)
				calling, hangUp := context.WithCancel(ctx)
				r := talk.message(calling, "tools/call", params{"name": "hang", "arguments": params{}})
				go func() { _, _ = http.DefaultTransport.RoundTrip(r) }()
				Eventually(upstream.Hanging).WithContext(ctx).WithTimeout(patience).Should(Receive())
				hangUp()
				Eventually(upstream.Cancelled).WithContext(ctx).WithTimeout(patience).Should(Receive())
			}, SpecTimeout(time.Minute))

		It("passes a silent stream on at once over HTTP/2", Label("gateway", "U4"), func(ctx SpecContext) {
			upstream := NewUpstream(apiKey)
			d := DeployGateway(binary, upstream, proxy)
			talk := d.Converse(ctx, sessions, d.NewClient().Connect(ctx).Access)
			upstream.Answer(func(w http.ResponseWriter, r *http.Request) { // as servers do that are not the Go SDK
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			answer := must(http.DefaultTransport.RoundTrip(talk.Request(ctx, http.MethodGet)))
			Expect(answer.Proto).To(Equal("HTTP/2.0"))
			Expect(answer.Body.Close()).To(Succeed())
		}, SpecTimeout(20*time.Second))

		It("logs the forwarded client address, trusted from the proxy only", Label("B6"), func(ctx SpecContext) {
			d := Deploy(binary, proxy, "127.0.0.1")
			Post(ctx, d.Issuer+"/oauth/token", url.Values{}, forwarded("203.0.113.7"))
			Eventually(d.run.Err).WithTimeout(patience).Should(saysAddress(peopleAddress))
			Post(ctx, d.Listens+"/oauth/token", url.Values{}, forwarded("203.0.113.8"))
			Eventually(d.run.Err).WithTimeout(patience).Should(saysAddress(peopleAddress))
			Expect(string(d.run.Err.Contents())).NotTo(ContainSubstring("203.0.113."))
		}, SpecTimeout(time.Minute))

		It("detects that a client has disconnected", Label("G16"), func(ctx SpecContext) {
			d := Deploy(binary, proxy, "127.0.0.1")
			client, leave := context.WithCancel(ctx)
			next(d.Open(client, d.NewClient().Connect(ctx).Access), "event: endpoint", patience)
			d.openStreams(ctx, "1")
			leave()
			d.openStreams(ctx, "0")
		}, SpecTimeout(time.Minute))
	},
		Entry("Caddy", Proxy(caddyProxy)),
		Entry("nginx", Proxy(nginxProxy)),
	)

	It("keeps streams open through both, with comments in time and events without delay, until their grants end",
		Label("G16"), func(ctx SpecContext) {
			type talk struct {
				*Conversation
				lines   chan string
				refresh string
				client  *Client
			}
			var talks []*talk
			for _, proxy := range []Proxy{caddyProxy, nginxProxy} {
				d := Deploy(binary, proxy, "127.0.0.1")
				client := d.NewClient()
				tokens := client.Connect(ctx)
				lines := d.Open(ctx, tokens.Access)
				next(lines, "event: endpoint", patience)
				target := d.Issuer + next(lines, "data: ", patience)
				talks = append(talks, &talk{&Conversation{
					World:    d.World,
					Revision: httpSSE,
					Access:   tokens.Access,
					target:   target,
				}, lines, tokens.Refresh, client})
			}
			for range beats {
				for _, talk := range talks {
					next(talk.lines, ": keep-alive", beatEvery+patience)
				}
			}
			for _, talk := range talks {
				talk.Post(ctx, "initialize",
					params{"protocolVersion": httpSSE, "capabilities": params{},
						"clientInfo": params{"name": "spec", "version": "1"}})
				next(talk.lines, "event: message", patience)
				Expect(next(talk.lines, "data: ", patience)).To(ContainSubstring(`"protocolVersion"`))
				Expect(talk.client.Revoke(ctx, talk.refresh).StatusCode).To(Equal(http.StatusOK))
				Eventually(talk.lines).WithTimeout(patience).Should(BeClosed())
			}
		}, SpecTimeout(3*time.Minute))

	DescribeTable("with an nginx that buffers", func(ctx SpecContext, outcome string, exchange ...string) {
		found := Deploy(binary, nginxProxy, "127.0.0.1", exchange...).examine(ctx).Of("stream")
		Expect(found.Status).To(Equal(outcome), found.Seen)
	},
		Entry("delivers events because of X-Accel-Buffering", SpecTimeout(time.Minute), "ok",
			"proxy_http_version 1.1;", "", "proxy_buffering off;", "proxy_buffering on;"),
		Entry("is reported by doctor when nginx ignores the header", SpecTimeout(time.Minute), "failed",
			"proxy_http_version 1.1;", "", "proxy_buffering off;",
			"proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;"),
	)

	DescribeTable("with another proxy in front, logs the address that this one forwards",
		Label("B6"), func(ctx SpecContext, proxy Proxy, exchange ...string) {
			d := Deploy(binary, proxy, "127.0.0.1,"+peopleAddress, exchange...)
			Post(ctx, d.Issuer+"/oauth/token", url.Values{}, forwarded("203.0.113.7"))
			Eventually(d.run.Err).WithTimeout(patience).Should(saysAddress("203.0.113.7"))
		},
		Entry("to Caddy, which must trust it", SpecTimeout(time.Minute), Proxy(caddyProxy),
			"reverse_proxy {$UPSTREAM:127.0.0.1:8080}",
			"reverse_proxy {$UPSTREAM:127.0.0.1:8080} {\n\t\ttrusted_proxies "+peopleAddress+"\n\t}"),
		Entry("to nginx", SpecTimeout(time.Minute), Proxy(nginxProxy)),
	)
})

// saysAddress matches the log line of a request to the token endpoint from this address.
func saysAddress(address string) types.GomegaMatcher {
	return gbytes.Say(`msg=request .*path=/oauth/token .*address=` + regexp.QuoteMeta(address) + `\b`)
}
