package features_test

import (
	"context"
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
		return time.Duration(must(strconv.Atoi(refused.Header.Get("Retry-After")))) * time.Second
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

var _ = Describe("The session limits", Label("G20"), func() {
	atMost := func(all, perPerson int) func(*service.Config) {
		return func(config *service.Config) {
			config.Limits.MaxSessions, config.Limits.MaxSessionsPerPerson = all, perPerson
		}
	}
	listTools := func(ctx context.Context, talk *Conversation) int {
		return talk.Post(ctx, "tools/list", params{}).StatusCode
	}
	// open opens a session that is idle from then on. The server answers the notification that it
	// begins with before handling it, and answers a request after both.
	open := func(ctx context.Context, world *World, access string) *Conversation {
		GinkgoHelper()
		talk := world.Converse(ctx, sessions, access)
		Expect(listTools(ctx, talk)).To(Equal(http.StatusOK))
		return talk
	}
	// hoard opens sessions of one person, each with another client.
	hoard := func(ctx context.Context, world *World, n int) (talks []*Conversation) {
		GinkgoHelper()
		for range n {
			talks = append(talks, open(ctx, world, world.NewClient().Connect(ctx).Access))
		}
		return talks
	}

	It("allow another person to open sessions while one connects many clients", func(ctx SpecContext) {
		const share = 5
		world := NewWorld(atMost(2*share, share))
		hoarded := hoard(ctx, world, 3*share)
		other := world.NewClient().ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author)).Access
		for range share {
			open(ctx, world, other)
		}
		for i, talk := range hoarded {
			Expect(listTools(ctx, talk)).
				To(Equal(map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[i < 2*share]), "session %d", i)
		}
	})

	It("end a session of the person with the most sessions for each new one at the total limit", func(ctx SpecContext) {
		world := NewWorld(atMost(6, 6))
		hoarded := hoard(ctx, world, 6)
		var others []*Conversation
		for _, name := range []string{"ada", "bob", "cyd"} {
			access := world.NewClient().ConnectAs(ctx, world.TokenFor(ctx, name, demosite.Author)).Access
			others = append(others, open(ctx, world, access))
		}
		for _, talk := range append(others, hoarded[3:]...) {
			Expect(listTools(ctx, talk)).To(Equal(http.StatusOK))
		}
		for _, talk := range hoarded[:3] {
			Expect(listTools(ctx, talk)).To(Equal(http.StatusNotFound))
		}
	})

	It("count ended sessions in the metrics, and name the setting in the trace",
		Label("operations", "trace"), func(ctx SpecContext) {
			operated := Operate(atMost(10, 1))
			talks := hoard(ctx, operated.World, 2)
			Expect(listTools(ctx, talks[0])).To(Equal(http.StatusNotFound))
			Expect(operated.AskAdmin(ctx, "/metrics").Text).
				To(ContainSubstring(`pasteport_limits_total{effect="evicted",limit="sessions"} 1`))
			Eventually(func() string {
				var shown string
				for _, traced := range operated.Traces(ctx) {
					shown += Run(ctx, append([]string{"trace", traced.ID}, operated.Kept()...)...).Out
				}
				return shown
			}).WithContext(ctx).WithTimeout(patience).
				Should(And(ContainSubstring("G20"), ContainSubstring("max-sessions-per-person")))
		})

	It("end the oldest stream of a person through a gateway", Label("gateway"), func(ctx SpecContext) {
		world := NewGateway(NewUpstream(apiKey).URL+"/mcp", atMost(10, 1))
		first := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access).Listen(ctx)
		second := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access).Listen(ctx)
		Eventually(first.Events).WithTimeout(patience).Should(BeClosed())
		Consistently(second.Events).WithContext(ctx).ShouldNot(BeClosed())
	})
})

// atMostGrants limits the connections of a host token.
func atMostGrants(limit int) func(*service.Config) {
	return func(config *service.Config) { config.Limits.MaxGrantsPerToken = limit }
}

var _ = Describe("Too many connections of one token", Label("J14", "stores"), func() {
	const limit = 3
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(atMostGrants(limit))
		client = world.NewClient()
	})
	connect := func(ctx context.Context) Tokens {
		world.Clock.Advance(time.Minute)
		return client.Connect(ctx)
	}

	It("end the least recently used one", Label("I12"), func(ctx SpecContext) {
		first, unused, third := connect(ctx), connect(ctx), connect(ctx)
		world.Clock.Advance(time.Minute)
		Expect(world.Call(ctx, first.Access).StatusCode).To(Equal(http.StatusOK))
		newest := connect(ctx)
		Expect(world.Call(ctx, unused.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(client.Token(ctx, client.Refresh(unused.Refresh))).
			To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
		for _, kept := range []Tokens{first, third, newest} {
			Expect(world.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		}
		Expect(world.Grants(ctx)).To(HaveLen(limit))
		Expect(world.Log.String()).To(ContainSubstring(`"reason":"ended_by_limit"`))
	})

	It("end no connection of another token, and do not count ended ones", func(ctx SpecContext) {
		other := client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author))
		kept := connect(ctx)
		for range limit {
			client.Revoke(ctx, connect(ctx).Refresh)
		}
		for range limit - 1 {
			connect(ctx)
		}
		Expect(world.Call(ctx, other.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Grants(ctx)).To(HaveLen(limit + 1))
	})

	It("count too if they were made under an earlier server secret", Label("J2"), func(ctx SpecContext) {
		oldest := connect(ctx)
		for range limit - 1 {
			connect(ctx)
		}
		world.RotateKeys(ctx)
		connect(ctx)
		Expect(world.Call(ctx, oldest.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(world.Grants(ctx)).To(HaveLen(limit))
	})

	It("are back at the limit one approval after simultaneous approvals", Label("I14"), func(ctx SpecContext) {
		for range limit {
			connect(ctx)
		}
		pages := make(chan Page, 4) // below the limit of concurrent guesses from one address
		for range cap(pages) {
			pages <- client.Consent(ctx)
		}
		for _, answer := range atOnce(cap(pages), func() Response { return (<-pages).Approve(ctx, world.Token) }) {
			Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
		}
		connect(ctx)
		Expect(world.Grants(ctx)).To(HaveLen(limit))
	})

	It("are ended too when the token replaces another one, however often", Label("J19"), func(ctx SpecContext) {
		const newKey, ada = "the-new-key-of-the-person", `{"subject":"ada","roles":["editor"]}`
		site := NewKeySite(map[string]string{editorToken: ada, newKey: ada})
		world = NewWorld(site.Verify, atMostGrants(limit))
		client = world.NewClient()
		var newest Tokens
		for range 3 {
			for range limit {
				newest = connect(ctx)
			}
			Expect(world.service.Authz.ReplaceHostToken(ctx, world.Token, newKey)).To(Equal(limit))
			Expect(world.Grants(ctx)).To(HaveLen(limit))
		}
		Expect(world.Call(ctx, newest.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("are counted in the metrics, and the trace of an ended connection names the setting",
		Label("operations", "trace"), func(ctx SpecContext) {
			operated := Operate(atMostGrants(1))
			for range 2 {
				operated.NewClient().Connect(ctx)
				operated.Clock.Advance(time.Minute)
			}
			Expect(operated.AskAdmin(ctx, "/metrics").Text).
				To(ContainSubstring(`pasteport_limits_total{effect="evicted",limit="grants"} 1`))
			Eventually(func() (shown string) {
				for _, traced := range operated.Traces(ctx) {
					shown += Run(ctx, append([]string{"trace", traced.ID}, operated.Kept()...)...).Out
				}
				return shown
			}).WithContext(ctx).WithTimeout(patience).
				Should(ContainSubstring("its token had more connections than max-grants-per-token allows"))
		})
})
