package features_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
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
	world := EachWorld(behind("127.0.0.1/32"))
	client := world.EachClient()
	var tokens Tokens
	var renewed string
	BeforeEach(func(ctx SpecContext) {
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

// GoTo opens another page of the connections.
func (p Page) GoTo(ctx context.Context, page string) Page {
	GinkgoHelper()
	return ReadPage(
		Post(ctx, p.Action, url.Values{"decision": {"page"}, "ticket": {p.Hidden.Get("ticket")}, "page": {page}}))
}

var _ = Describe("Paging through one's connections", Label("J15", "stores"), func() {
	const connected = 27
	world := EachWorld(atMostGrants(30))
	client := world.EachClient()
	var codes []string
	BeforeEach(func(ctx SpecContext) {
		codes = nil
		for range connected {
			world.Clock.Advance(10 * time.Millisecond)
			codes = append(codes, client.Authorize(ctx))
		}
	})

	It("shows 25 connections at a time, the last used first, and each one once", func(ctx SpecContext) {
		world.Clock.Advance(time.Minute / 2)
		oldest := client.Token(ctx, client.Exchange(codes[0])).Tokens()
		Expect(world.Call(ctx, oldest.Access).StatusCode).To(Equal(http.StatusOK))
		first := world.Connections(ctx, world.Token)
		second := first.GoTo(ctx, "2")
		Expect(first.grants()).To(HaveLen(25))
		Expect(second.grants()).To(HaveLen(connected - 25))
		Expect(append(first.grants(), second.grants()...)).To(HaveEach(Not(BeEmpty())))
		all := map[string]bool{}
		for _, grant := range append(first.grants(), second.grants()...) {
			all[grant] = true
		}
		Expect(all).To(HaveLen(connected))
		listed := world.Grants(ctx)
		Expect(first.grants()[0]).To(Equal(listed[0].ID), "it was used last")
		Expect(first.grants()[1]).To(Equal(listed[connected-1].ID), "it was connected last")
		Expect(first.Text).To(And(ContainSubstring("Page 1 of 2"), ContainSubstring("Next page"),
			Not(ContainSubstring("Previous page"))))
		Expect(second.Text).To(And(ContainSubstring("Page 2 of 2"), ContainSubstring("Previous page"),
			Not(ContainSubstring("Next page"))))
		Expect(second.GoTo(ctx, "1").grants()).To(Equal(first.grants()))
	})

	It("stays on the page after one of its connections has ended, and shows the previous page when it is empty",
		func(ctx SpecContext) {
			page := world.Connections(ctx, world.Token).GoTo(ctx, "2")
			end := func(page Page) Page {
				form := url.Values{
					"decision": {"end"},
					"ticket":   {page.Hidden.Get("ticket")},
					"page":     {"2"},
					"grant":    {page.grants()[0]},
				}
				return ReadPage(Post(ctx, page.Action, form))
			}
			Expect(page.Text).To(MatchRegexp(`name="grant" value="` + regexp.QuoteMeta(page.grants()[0]) +
				`"> ?<input type="hidden" name="page" value="2">`))
			left := end(page)
			Expect(left.grants()).To(Equal(page.grants()[1:]))
			Expect(end(left).grants()).To(HaveLen(25))
		})

	It("ends all connections with one button on any page", Label("I12"), func(ctx SpecContext) {
		Expect(world.Connections(ctx, world.Token).GoTo(ctx, "2").End(ctx, "").Text).
			To(ContainSubstring("27 connections have ended."))
		Expect(world.Grants(ctx)).To(BeEmpty())
	})

	DescribeTable("shows an existing page for", func(ctx SpecContext, asked string, shown int) {
		Expect(world.Connections(ctx, world.Token).GoTo(ctx, asked).Text).
			To(ContainSubstring("Page " + strconv.Itoa(shown) + " of 2"))
	},
		Entry("a number that is too high", "99", 2),
		Entry("a word", "x", 1),
		Entry("a number beyond 64 bits", "99999999999999999999", 2),
	)

	It("asks for the token again when the page is out of date, and refuses a forged ticket",
		Label("B4"), func(ctx SpecContext) {
			page := world.Connections(ctx, world.Token)
			world.Clock.Advance(10 * time.Minute)
			late := page.GoTo(ctx, "2")
			Expect(late.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(late.Text).To(ContainSubstring("This page is out of date."))
			page.Hidden.Set("ticket", "AAAA")
			Expect(page.GoTo(ctx, "2").StatusCode).To(Equal(http.StatusBadRequest))
		})

	It("shows the limit when nine tenths of it are used", Label("J14"), func(ctx SpecContext) {
		page := world.Connections(ctx, world.Token)
		Expect(page.Text).
			To(ContainSubstring("You have 27 of at most 30 connections. Beyond that, the one unused for the longest " +
				"time ends."))
		Expect(page.End(ctx, page.grants()[0]).Text).NotTo(ContainSubstring("You have"))
	})
})
