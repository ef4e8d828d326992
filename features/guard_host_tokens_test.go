package features_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Sending the site's own token in the header", Label("G22"), func() {
	const beforeMinute = 40 * time.Second // an answer of the site is used for a minute
	var (
		site  *KeySite
		world *World
	)
	accept := func(config *service.Config) {
		config.AcceptHostTokens, config.Verification = true, overHTTP.configure(site.URL("/token"))
	}
	BeforeEach(func() {
		site = NewKeySite(map[string]string{"key-of-ada": `{"subject":"ada","roles":["author"]}`,
			"2|key-of-bob": `{"subject":"bob","roles":["author"]}`})
		world = NewWorld(accept)
	})
	grants := func(ctx context.Context) (all int) {
		GinkgoHelper()
		for _, err := range world.service.Authz.Grants(ctx) {
			Expect(err).NotTo(HaveOccurred())
			all++
		}
		return all
	}
	call := func(ctx context.Context, token string) int { return world.Call(ctx, token).StatusCode }

	DescribeTable("acts as the person without a grant, in revision", func(ctx SpecContext, revision string) {
		path, adjust := auditing()
		world = NewWorld(accept, adjust)
		talk := world.Converse(ctx, revision, "key-of-ada")
		Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(authorTools))
		Expect(talk.Use(ctx, "create_article", params{"title": "By a machine"}).Error.Code).To(BeZero())
		Expect(toolCalls(path, 1)).To(ConsistOf(And(HaveField("Subject", "ada"), HaveField("Client", "direct"),
			HaveField("Grant", HavePrefix("direct/")), HaveField("Outcome", "ok"))))
		Expect(grants(ctx)).To(BeZero())
		Expect(site.Questions("key-of-ada")).To(Equal(1))
		text := world.Log.String()
		Expect(text).NotTo(ContainSubstring("key-of-ada"))
	}, revisions())

	It("asks the site once in a minute for all requests with a token", Label("2026-07-28"), func(ctx SpecContext) {
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				defer GinkgoRecover()
				Expect(call(ctx, "2|key-of-bob")).To(Equal(http.StatusOK))
			})
		}
		group.Wait()
		world.Clock.Advance(59 * time.Second)
		Expect(call(ctx, "2|key-of-bob")).To(Equal(http.StatusOK))
		Expect(site.Questions("2|key-of-bob")).To(Equal(1))
		world.Clock.Advance(time.Second)
		site.Answer("2|key-of-bob", "")
		Expect(call(ctx, "2|key-of-bob")).To(Equal(http.StatusUnauthorized))
		Expect(site.Questions("2|key-of-bob")).To(Equal(2))
	})

	It("leaves tokens of Pasteport valid", Label("2026-07-28"), func(ctx SpecContext) {
		Expect(call(ctx, world.NewClient().ConnectAs(ctx, "key-of-ada").Access)).To(Equal(http.StatusOK))
	})

	It("refuses a stranger's token like any invalid token, and asks the site about it once in a minute",
		Label("G7"), func(ctx SpecContext) {
			for range 5 {
				refused := world.Call(ctx, "unknown-key")
				Expect(refused.StatusCode).To(Equal(http.StatusUnauthorized))
				Expect(refused.Header.Get("WWW-Authenticate")).
					To(Equal(world.Call(ctx, "ppa_unknown").Header.Get("WWW-Authenticate")))
			}
			world.Clock.Advance(59 * time.Second)
			Expect(call(ctx, "unknown-key")).To(Equal(http.StatusUnauthorized))
			Expect(site.Questions("unknown-key")).To(Equal(1))
			world.Clock.Advance(time.Second)
			Expect(call(ctx, "unknown-key")).To(Equal(http.StatusUnauthorized))
			Expect(site.Questions("unknown-key")).To(Equal(2))
			Expect(grants(ctx)).To(BeZero())
		})

	It("answers 429 to unknown tokens after too many wrong ones, and goes on with those that were right", Label("B6"),
		func(ctx SpecContext) {
			Expect(call(ctx, "key-of-ada")).To(Equal(http.StatusOK))
			for i := range freeGuesses + 1 { // the last one has the turn of this second
				Expect(call(ctx, fmt.Sprint("guess-", i))).To(Equal(http.StatusUnauthorized))
			}
			refused := world.Call(ctx, "another-guess")
			Expect(refused.StatusCode).To(Equal(http.StatusTooManyRequests))
			Expect(refused.Header.Get("Retry-After")).To(Equal("1"))
			Expect(refused.Header.Get("WWW-Authenticate")).To(BeEmpty())
			Expect(site.Questions("another-guess")).To(BeZero())
			Expect(call(ctx, "key-of-ada")).To(Equal(http.StatusOK))
			world.Clock.Advance(time.Second)
			Expect(call(ctx, "another-guess")).To(Equal(http.StatusUnauthorized))
			world.Clock.Advance(time.Minute)
			Expect(call(ctx, "key-of-ada")).To(Equal(http.StatusOK))
			Expect(site.Questions("key-of-ada")).To(Equal(2))
		})

	It("ends with the end that the site pushes, and its streams and sessions with it", Label("G16", "N12"),
		func(ctx SpecContext) {
			talk := world.Converse(ctx, sessions, "key-of-ada")
			stream := talk.Listen(ctx)
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(authorTools))
			site.Answer("key-of-ada", "")
			Expect(world.EndGrantsOf(ctx, "key-of-ada")).Error().NotTo(HaveOccurred())
			Expect(call(ctx, "key-of-ada")).To(Equal(http.StatusUnauthorized))
			Eventually(stream.Events).WithTimeout(patience).Should(BeClosed())
		})

	It("ends on every replica where the token also had a grant", Label("G16", "replicas"), func(ctx SpecContext) {
		replica := world.Replica()
		elsewhere := func() int { return replica.Call(ctx, "key-of-ada").StatusCode }
		world.NewClient().ConnectAs(ctx, "key-of-ada")
		Expect(elsewhere()).To(Equal(http.StatusOK))
		Expect(replica.Call(ctx, "2|key-of-bob").StatusCode).To(Equal(http.StatusOK))
		site.Answer("key-of-ada", "")
		Expect(world.EndGrantsOf(ctx, "key-of-ada")).Error().NotTo(HaveOccurred())
		Eventually(elsewhere).WithTimeout(beforeMinute).Should(Equal(http.StatusUnauthorized))
		Expect(replica.Call(ctx, "2|key-of-bob").StatusCode).To(Equal(http.StatusOK))
		Expect(site.Questions("2|key-of-bob")).To(Equal(1), "the token of another person is not asked about again")
	})

	It("ends with the end that an operator commands, where the token also had a grant", Label("J10"),
		func(ctx SpecContext) {
			world.NewClient().ConnectAs(ctx, "key-of-ada")
			Expect(call(ctx, "key-of-ada")).To(Equal(http.StatusOK))
			site.Answer("key-of-ada", "")
			ended := RunTyping(ctx, "key-of-ada", append([]string{"grants", "end", "--token", "-"}, world.Kept()...)...)
			Expect(ended.Out).To(Equal("ended: 1\n"), ended.Err)
			Eventually(func() int { return call(ctx, "key-of-ada") }).WithTimeout(beforeMinute).
				Should(Equal(http.StatusUnauthorized))
		})

	It("opens a session again after a pushed end, if the site still accepts the token", Label("G16"),
		func(ctx SpecContext) {
			Expect(world.EndGrantsOf(ctx, "key-of-ada")).Error().NotTo(HaveOccurred())
			talk := world.Converse(ctx, sessions, "key-of-ada")
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(authorTools))
		})

	It("never sends a token of ours to the site, also after its end", Label("G7"), func(ctx SpecContext) {
		tokens := world.NewClient().ConnectAs(ctx, "key-of-ada")
		Expect(world.EndGrantsOf(ctx, "key-of-ada")).Error().NotTo(HaveOccurred())
		for _, token := range []string{tokens.Access, tokens.Refresh, tokens.Access + "x", "ppc_x", "pps_x"} {
			Expect(call(ctx, token)).To(Equal(http.StatusUnauthorized))
			Expect(site.Questions(token)).To(BeZero())
		}
	})

	It("answers 503 while the site cannot check tokens, and accepts the token afterwards", Label("G11"),
		func(ctx SpecContext) {
			site.Fail(true)
			down := world.Call(ctx, "key-of-ada")
			Expect(down.StatusCode).To(Equal(http.StatusServiceUnavailable))
			Expect(down.Header.Get("WWW-Authenticate")).To(BeEmpty())
			site.Fail(false)
			Expect(call(ctx, "key-of-ada")).To(Equal(http.StatusOK))
		})

	It("counts only in the header", Label("G5"), func(ctx SpecContext) {
		refused := request(ctx, http.MethodPost, world.MCP()+"?access_token=key-of-ada", nil)
		Expect(refused.StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(site.Questions("key-of-ada")).To(BeZero())
	})

	It("has no right to a session of another person", Label("G14"), func(ctx SpecContext) {
		talk := world.Converse(ctx, sessions, "key-of-ada")
		Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(ConsistOf(authorTools))
		talk.Access = "2|key-of-bob"
		Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
	})

	It("reaches the upstream of a gateway like a pasted token, until the upstream refuses it",
		Label("gateway", "U6", "U8"), func(ctx SpecContext) {
			upstream := NewUpstream(apiKey)
			gateway := NewGateway(upstream.URL+"/mcp", func(config *service.Config) { config.AcceptHostTokens = true })
			talk := gateway.Converse(ctx, stateless, apiKey)
			Expect(talk.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
			asked := upstream.Asked()
			Expect(asked[len(asked)-1].Header.Get("Authorization")).To(Equal("Bearer " + apiKey))
			upstream.Revoke()
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusUnauthorized))
		})

	DescribeTable("also counts where present sends it, as the site's customers do without a gateway:",
		Label("gateway", "G14", "U18"), func(ctx SpecContext, name, prefix string) {
			upstream := NewUpstreamReading(headerAfter(name, prefix), apiKey)
			gateway := NewGateway(upstream.URL+"/mcp", presenting(name+": "+prefix+"{token}"),
				func(config *service.Config) { config.AcceptHostTokens = true })
			talk := gateway.Converse(ctx, stateless, "")
			use := func(values ...string) Response {
				return talk.Post(ctx, "tools/call", params{"name": "shout", "arguments": params{"text": "x"}},
					func(r *http.Request) { r.Header[name] = values })
			}
			Expect(use(prefix + apiKey)).To(And(HaveField("StatusCode", 200), HaveField("Text", ContainSubstring("X"))))
			asked := upstream.Asked()
			Expect(asked[len(asked)-1].Header[name]).To(Equal([]string{prefix + apiKey}))
			refresh := gateway.NewClient().Connect(ctx).Refresh
			known := len(upstream.Asked())
			for _, values := range [][]string{{prefix + refresh}, {prefix + apiKey, prefix + apiKey}, {prefix}} {
				Expect(use(values...).StatusCode).To(BeElementOf(http.StatusUnauthorized, http.StatusBadRequest))
			}
			Expect(upstream.Asked()).To(HaveLen(known))
			Expect(talk.Post(ctx, "tools/list", params{}, with("Api-Key", apiKey)).Header.Get("WWW-Authenticate")).
				To(ContainSubstring("A key in the header Api-Key does not count here"))
			Expect(use(prefix + "another-key").StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(gateway.Log.String()).NotTo(ContainSubstring(apiKey))
		},
		Entry("in a header of its own", "X-Api-Key", ""),
		Entry("with another scheme", "Authorization", "Token "),
	)

	DescribeTable("in another header gets a 401 that names both:", Label("G6"),
		func(ctx SpecContext, name, value string) {
			refused := world.Converse(ctx, stateless, "").Post(ctx, "tools/list", params{}, with(name, value))
			Expect(refused.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(refused.Header.Get("WWW-Authenticate")).To(And(ContainSubstring("resource_metadata="),
				ContainSubstring(`error_description="A key in the header `+name+` does not count here: send it in the `+
					`header Authorization, after the word Bearer"`)))
			Expect(site.Questions("key-of-ada")).To(BeZero())
			Expect(world.Log.String()).NotTo(ContainSubstring("key-of-ada"))
			plain := NewWorld()
			Expect(plain.Converse(ctx, stateless, "").Post(ctx, "tools/list", params{}, with(name, value))).
				To(BeChallenged(plain, ""), "without accept-host-tokens")
		},
		Entry("a header of its own", "X-Api-Key", "key-of-ada"),
		Entry("another scheme", "Authorization", "Token key-of-ada"),
	)

	It("is refused in a service whose person enters more than a token", Label("F9"), func() {
		config := service.DefaultConfig()
		config.Issuer, config.AcceptHostTokens = "https://cms.example", true
		config.Gateway.Upstreams = []service.Upstream{serverAt("", "http://127.0.0.1:9/mcp")}
		config.HostFields, config.Gateway.Present = userAndKey, []string{"X-Key: {user} {org} {token}"}
		_, err := service.Open(GinkgoT().Context(), *config)
		Expect(err).To(MatchError(ContainSubstring(`the field "user" is required, which no header has`)))
	})
})
