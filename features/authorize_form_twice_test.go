package features_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
)

var _ = Describe("Sending a consent form twice", Label("B13", "I5", "smoke", "stores"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
	})
	codeOf := func(answer Response) string {
		GinkgoHelper()
		Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
		return answer.Target().Query().Get("code")
	}

	DescribeTable("accepts the first code that is redeemed, and refuses the other as spent:",
		Label("D19"), func(ctx SpecContext, first, second int) {
			page := client.Consent(ctx)
			codes := []string{codeOf(page.Approve(ctx, world.Token)), codeOf(page.Approve(ctx, world.Token))}
			tokens := client.Token(ctx, client.Exchange(codes[first]))
			Expect(tokens.StatusCode).To(Equal(http.StatusOK), tokens.Text)
			Expect(client.Token(ctx, client.Exchange(codes[second])).Tokens().Error).To(Equal("invalid_grant"))
			Expect(world.Call(ctx, tokens.Tokens().Access).StatusCode).
				To(Equal(http.StatusOK), "the grant has not ended")
			Expect(client.Token(ctx, client.Refresh(tokens.Tokens().Refresh)).StatusCode).To(Equal(http.StatusOK))
			Expect(page.Approve(ctx, world.Token)).To(BeAPage(http.StatusBadRequest, "This form has been used already"))
			Expect(world.EndGrantsOf(ctx, world.Token)).To(Equal(1), "there is one grant")
		},
		Entry("that of the first answer", 0, 1), Entry("that of the second answer", 1, 0),
	)

	It("tells no app that it was denied after the same form has approved it", Label("B13"), func(ctx SpecContext) {
		page := client.Consent(ctx)
		tokens := client.Token(ctx, client.Exchange(codeOf(page.Approve(ctx, world.Token)))).Tokens()
		Expect(page.Deny(ctx)).To(BeAPage(http.StatusBadRequest, "This form has been used already"))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("works for forms sent at the same moment", Label("I14"), func(ctx SpecContext) {
		for range 20 {
			world.Clock.Advance(time.Minute)
			client := world.NewClient()
			page := client.Consent(ctx)
			form := url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"approve"},
				"bearer_token": {world.Token}}
			exchanges := map[int]func() Response{}
			for i, approved := range atOnce(4, func() Response { return Post(ctx, page.Action, form) }) {
				exchanges[i] = func() Response { return client.Token(ctx, client.Exchange(codeOf(approved))) }
			}
			answers := slices.Collect(maps.Values(together(exchanges)))
			won := slices.IndexFunc(answers, func(a Response) bool { return a.StatusCode == http.StatusOK })
			Expect(won).NotTo(Equal(-1))
			Expect(world.Call(ctx, answers[won].Tokens().Access).StatusCode).To(Equal(http.StatusOK))
			for i, answer := range answers {
				if i != won {
					Expect(answer.Tokens().Error).To(Equal("invalid_grant"))
				}
			}
		}
		Expect(world.EndGrantsOf(ctx, world.Token)).To(Equal(20), "each form has one grant")
	}, SpecTimeout(time.Minute))

	It("works on two replicas", func(ctx SpecContext) {
		replica := world.Replica()
		page := client.Consent(ctx)
		here := codeOf(page.Approve(ctx, world.Token))
		page.Action = replica.Address + "/oauth/authorize"
		there := codeOf(page.Approve(ctx, world.Token))
		Expect(client.Token(ctx, client.Exchange(here)).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Token(ctx, client.Exchange(there)).Tokens().Error).To(Equal("invalid_grant"))
	})

	It("grants the scopes of the second token when another one is pasted, and voids the first code",
		func(ctx SpecContext) {
			other := world.TokenFor(ctx, "grace", demosite.Editor)
			page := client.Consent(ctx)
			first, second := codeOf(page.Approve(ctx, world.Token)), codeOf(page.Approve(ctx, other))
			Expect(second).NotTo(Equal(first))
			Expect(client.Token(ctx, client.Exchange(first)).Tokens().Error).To(Equal("invalid_grant"))
			Expect(client.Token(ctx, client.Exchange(second)).StatusCode).To(Equal(http.StatusOK))
			Expect(world.EndGrantsOf(ctx, world.Token)).To(BeZero())
			Expect(world.EndGrantsOf(ctx, other)).To(Equal(1))
		})
})
