package features_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

// Replace presses the button below the list, with a new token.
func (p Page) Replace(ctx context.Context, token string, change ...func(*http.Request)) Page {
	GinkgoHelper()
	form := url.Values{"decision": {"replace"}, "ticket": {p.Hidden.Get("ticket")}, "bearer_token": {token}}
	return ReadPage(Post(ctx, p.Action, form, change...))
}

var _ = Describe("Replacing one's token on the connections page", Label("J19", "stores"), func() {
	var world *World
	var client *Client
	var tokens Tokens
	var renewed string
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld(behind("127.0.0.1/32"))
		client = world.NewClient()
		tokens = client.Connect(ctx)
		renewed = world.TokenFor(ctx, "editor", demosite.Editor)
	})

	It("lets all connections of the old token go on with the new one", func(ctx SpecContext) {
		other := world.NewClient().Connect(ctx)
		page := world.Connections(ctx, world.Token)
		Expect(page.Text).NotTo(Or(ContainSubstring(world.Token), ContainSubstring(renewed)))
		done := page.Replace(ctx, " Bearer "+renewed+"\n")
		Expect(done.StatusCode).To(Equal(http.StatusOK))
		Expect(done.Text).To(ContainSubstring("The apps now use the new token."))
		Expect(done.grants()).To(ConsistOf(page.grants()))
		Expect(done.Text).NotTo(Or(ContainSubstring(world.Token), ContainSubstring(renewed)))
		Expect(world.Site().RevokeToken(world.Token)).To(Succeed())
		tokens = client.expectAlive(ctx, tokens)
		Expect(world.Connections(ctx, world.Token).grants()).To(BeEmpty())
		Expect(done.End(ctx, "").Text).To(ContainSubstring("2 connections have ended."))
		client.expectDead(ctx, tokens, other)
		Expect(world.Log.String()).NotTo(ContainSubstring(renewed))
	})

	It("confirms nothing on a page from before that is not there any more", Label("J21"), func(ctx SpecContext) {
		before := world.Connections(ctx, world.Token)
		world.Connections(ctx, world.Token).Replace(ctx, renewed)
		beOld := HaveField("Response", BeAPage(http.StatusBadRequest, "This page is out of date."))
		Expect(before.End(ctx, before.grants()[0])).To(beOld)
		Expect(before.End(ctx, "")).To(beOld)
		Expect(before.Replace(ctx, renewed)).To(beOld)
		later := client.Connect(ctx)
		Expect(before.End(ctx, before.grants()[0])).To(beOld)
		client.expectAlive(ctx, tokens)
		client.expectAlive(ctx, later)
	})

	DescribeTable("changes nothing and says why", func(ctx SpecContext, pasted func(SpecContext) string, status int,
		sentence string) {
		answer := world.Connections(ctx, world.Token).Replace(ctx, pasted(ctx))
		Expect(answer.StatusCode).To(Equal(status))
		Expect(answer.Text).To(And(ContainSubstring(sentence), ContainSubstring("Replace your token")))
		Expect(answer.grants()).To(HaveLen(1))
		client.expectAlive(ctx, tokens)
		Expect(answer.Replace(ctx, renewed).StatusCode).To(Equal(http.StatusOK), "the form can be used again")
	},
		Entry("for a wrong token", func(SpecContext) string { return "demo_wrong" }, 403,
			"This site does not know that token."),
		Entry("for a text that cannot be a token", func(SpecContext) string { return "a\x00b" }, 403,
			"It contains a line break"),
		Entry("for the token of another person", func(ctx SpecContext) string {
			return world.TokenFor(ctx, "ada", demosite.Editor)
		}, 403, "Nothing has changed"),
	)

	It("takes turns after ten wrong tokens, and is refused when too many wait", Label("B6", "B18"),
		func(ctx SpecContext) {
			page := world.Connections(ctx, world.Token)
			world.Clock.Stop()
			refused := refusedTurn(ctx, func(ctx context.Context) *http.Request {
				return formRequest(ctx, page.Action, page.fill(url.Values{"decision": {"replace"},
					"bearer_token": {"demo_wrong" + rand.Text()}}), forwarded(office))
			})
			Expect(refused).To(SayWhen())
			Expect(world.Connections(ctx, world.Token).grants()).To(HaveLen(1))
			Expect(page.Replace(ctx, renewed).Text).To(ContainSubstring("The apps now use the new token."))
		}, NodeTimeout(2*time.Minute))

	It("accepts the page for ten minutes", Label("B4"), func(ctx SpecContext) {
		page := world.Connections(ctx, world.Token)
		world.Clock.Advance(10 * time.Minute)
		Expect(page.Replace(ctx, renewed).Text).To(ContainSubstring("This page is out of date."))
		Expect(world.Connections(ctx, world.Token).grants()).To(HaveLen(1))
	})

	It("takes all fields where the site asks for several", Label("J16"), func(ctx SpecContext) {
		const ann, bea = "key-of-ann-1234", "new-key-of-ann-5678"
		upstream := NewUpstreamReading(basicCredentials, "ann:"+ann, "ann:"+bea)
		world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey,
			"Authorization: Basic {base64(user:token)}", "X-Org: {org}"))
		client := world.NewClient()
		tokens := client.ConnectWith(ctx, "user", "ann", "token", ann)
		asked := ReadPage(Get(ctx, world.Issuer+"/oauth/connections"))
		page := ReadPage(asked.Submit(ctx, entering("show", []string{"user", "ann", "token", ann})))
		Expect(page.Text).To(And(ContainSubstring("Enter your new values"), ContainSubstring("field_org")))
		answer := page.Submit(ctx, entering("replace", []string{"user", "ann", "token", bea}))
		Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		requests := upstream.Asked()
		Expect(basicCredentials(requests[len(requests)-1])).To(Equal("ann:" + bea))
	})

	It("keeps the page and the other values when one value is refused, with the message at its field", Label("B23"),
		func(ctx SpecContext) {
			const ann, bea = "key-of-ann-1234", "new-key-of-ann-5678"
			upstream := NewUpstreamReading(basicCredentials, "ann:"+ann, "ann:"+bea)
			world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey,
				"Authorization: Basic {base64(user:token)}", "X-Org: {org}"))
			world.NewClient().ConnectWith(ctx, "user", "ann", "token", ann)
			atUser := MatchRegexp(`value="Ann1"[^>]*aria-invalid="true"[^>]*>\s*` +
				`<p class="problem" id="field_user_problem">This does not look right.`)
			asked := ReadPage(Get(ctx, world.Issuer+"/oauth/connections"))
			refused := ReadPage(asked.Submit(ctx, entering("show", []string{"user", "Ann1", "token", ann})))
			Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
			Expect(refused.Text).To(And(atUser, ContainSubstring("Show connections"), Not(ContainSubstring(ann))))
			page := ReadPage(refused.Submit(ctx, entering("show", []string{"user", "ann", "token", ann})))
			wrong := entering("replace", []string{"user", "Ann1", "token", bea, "org", "acme"})
			refused = ReadPage(page.Submit(ctx, wrong))
			Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
			Expect(refused.Text).To(And(atUser, ContainSubstring(`value="acme"`), Not(ContainSubstring(bea))))
			Expect(refused.grants()).To(Equal(page.grants()))
			done := refused.Submit(ctx, entering("replace", []string{"user", "ann", "token", bea, "org", "acme"}))
			Expect(done.Text).To(ContainSubstring("The apps now use the new credentials."))
		})

	It("sends only the new token from the answer on, and soon in another process, with 64 calls in flight",
		Label("I17", "I22"),
		func(ctx SpecContext) {
			const fresh = "fresh-key-of-the-person-5678"
			upstream := NewUpstream(apiKey, fresh)
			upstream.AddEcho()
			world := NewGateway(upstream.URL + "/mcp")
			replicas := []*World{world, {Issuer: world.Replica().Address}}
			access := world.NewClient().ConnectAs(ctx, apiKey).Access
			var calls atomic.Int64
			page := world.Connections(ctx, apiKey)
			raceCalls(func() {
				Expect(page.Replace(ctx, fresh).Text).To(ContainSubstring("The apps now use"))
				Expect(calls.Load()).To(BeNumerically(">=", parallelCalls))
			}, func(caller int, late bool) {
				used := replicas[caller%2].Converse(ctx, stateless, access).Use(ctx, "key", params{}).Text()
				calls.Add(1)
				if late && caller%2 == 0 {
					Expect(used).To(Equal(fresh))
				}
				Expect(used).To(Or(Equal(apiKey), Equal(fresh)))
			})
			Eventually(func() string {
				return replicas[1].Converse(ctx, stateless, access).Use(ctx, "key", params{}).Text()
			}).WithContext(ctx).WithTimeout(patience).Should(Equal(fresh))
		})
})
