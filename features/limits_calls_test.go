package features_test

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Quotas for calls of tools", Label("G21"), func() {
	wait := func(refused Response) time.Duration {
		GinkgoHelper()
		Expect(refused.StatusCode).To(Equal(http.StatusTooManyRequests), refused.Text)
		Expect(refused.Text).To(And(ContainSubstring(`"id":7`), ContainSubstring("too many calls of tools")))
		seconds, err := strconv.Atoi(refused.Header.Get("Retry-After"))
		Expect(err).NotTo(HaveOccurred())
		return time.Duration(seconds) * time.Second
	}
	perMinute := func(calls int) func(*service.Config) {
		return func(config *service.Config) { config.Limits.CallsPerMinute = calls }
	}

	DescribeTable("refuse a person's further calls before a tool runs, in revision",
		func(ctx SpecContext, revision string) {
			world := NewWorld(perMinute(3))
			ada, sameAda := world.NewClient(), world.NewClient()
			token := world.TokenFor(ctx, "ada", demosite.Editor)
			talk := world.Converse(ctx, revision, ada.ConnectAs(ctx, token).Access)
			other := world.Converse(ctx, revision, sameAda.ConnectAs(ctx, token).Access)
			create := func(talk *Conversation) Response {
				return talk.Post(ctx, "tools/call",
					params{"name": "create_article", "arguments": params{"title": "One"}})
			}
			for _, by := range []*Conversation{talk, other, talk} {
				Expect(create(by).StatusCode).To(Equal(http.StatusOK))
			}
			Expect(wait(create(talk))).To(Equal(20 * time.Second))
			wait(create(other))
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(editorTools))
			bob := world.Converse(ctx, revision,
				world.NewClient().ConnectAs(ctx, world.TokenFor(ctx, "bob", demosite.Editor)).Access)
			Expect(create(bob).StatusCode).To(Equal(http.StatusOK), "another person")
			world.Clock.Advance(20 * time.Second)
			Expect(create(other).StatusCode).To(Equal(http.StatusOK))
			wait(create(talk))
		}, revisions(headers, sessions, stateless))

	It("count each call of a batch, and refuse a batch that is larger than the quota", Label("2025-03-26"),
		func(ctx SpecContext) {
			world := NewWorld(perMinute(2))
			talk := world.Converse(ctx, batching, world.NewClient().Connect(ctx).Access)
			batch := func(size int) int {
				body := "[" + strings.Join(slices.Repeat([]string{call(`"name":"list_articles"`)}, size), ",") + "]"
				return talk.Post(ctx, "tools/call", params{}, func(r *http.Request) {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				}).StatusCode
			}
			Expect(batch(3)).To(Equal(http.StatusTooManyRequests))
			Expect(batch(2)).To(Equal(http.StatusOK))
			Expect(batch(1)).To(Equal(http.StatusTooManyRequests))
		})

	It("of a gateway hold before the upstream gets a call, and are in the metrics, the audit "+
		"and the trace", Label("V1", "trace", "operations", "U26"), func(ctx SpecContext) {
		path, adjust := auditing()
		upstream := NewUpstream(apiKey)
		operated := Operate(gatewayTo(upstream.URL+"/mcp"), adjust, perMinute(2))
		world := operated.World
		world.Token = apiKey
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		call := func(tool string) Response {
			return talk.Post(ctx, "tools/call", params{"name": tool, "arguments": params{"text": "x"}})
		}
		Expect(call("shout").StatusCode).To(Equal(http.StatusOK))
		Expect(call("shout").StatusCode).To(Equal(http.StatusOK))
		asked := len(upstream.Asked())
		Expect(wait(call("shout"))).To(Equal(30 * time.Second))
		Expect(wait(call("delete_all"))).To(Equal(30 * time.Second))
		Expect(upstream.Asked()).To(HaveLen(asked))
		lines := toolCalls(path, 4)
		Expect(lines[2]).To(And(HaveField("Name", "shout"), HaveField("Outcome", "refused"), HaveField("Rule", "G21"),
			HaveField("Status", 429)))
		Expect(operated.AskAdmin(ctx, "/metrics").Text).
			To(ContainSubstring(`pasteport_limits_total{effect="refused",limit="calls"} 2`))
	})
})
