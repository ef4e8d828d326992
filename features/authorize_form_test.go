package features_test

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

func body(text string) func(*http.Request) {
	return func(r *http.Request) {
		// R has a valid URL.
		replaced, _ := http.NewRequestWithContext(context.Background(), r.Method, r.URL.String(),
			bytes.NewBufferString(text))
		r.Body, r.ContentLength, r.GetBody = replaced.Body, replaced.ContentLength, replaced.GetBody
	}
}

var _ = Describe("Submitting the consent form", Ordered, ContinueOnFailure, func() {
	var world *World
	var client *Client
	var page Page
	BeforeAll(func() { world = NewWorld() })
	BeforeEach(func(ctx SpecContext) {
		world.Clock.Advance(time.Minute) // refills the fetch budget
		client = world.NewClient()
		page = client.Consent(ctx)
	})
	filled := func() url.Values {
		return url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"approve"}, "bearer_token": {world.Token}}
	}
	lives := func(ctx SpecContext) {
		GinkgoHelper()
		Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther), "the form was used up")
	}

	DescribeTable("refuses a request", func(ctx SpecContext, status int, spoil func(*http.Request)) {
		Expect(Post(ctx, page.Action, filled(), spoil)).To(BeASafePage(status, "invalid_request"))
		lives(ctx)
	},
		Entry("without a media type", Label("B1"), 415, func(r *http.Request) { r.Header.Del("Content-Type") }),
		Entry("in JSON", Label("B1"), 415, with("Content-Type", "application/json")),
		Entry("in multipart format", Label("B1"), 415, with("Content-Type", "multipart/form-data; boundary=x")),
		Entry("of more than 32 KiB", Label("B1"), 413, body("evil="+strings.Repeat("x", 32<<10))),
		Entry("with a semicolon", Label("B1"), 400, body("decision=approve;ticket=x")),
		Entry("in the query", Label("B1"), 400, func(r *http.Request) {
			r.URL.RawQuery = filled().Encode()
			body("")(r)
		}),
		Entry("from another site", Label("B3"), 403, with("Sec-Fetch-Site", "cross-site")),
		Entry("from another origin", Label("B3"), 403, with("Origin", "https://evil.example")),
		Entry("from the null origin", Label("B3"), 403, with("Origin", "null")),
	)

	DescribeTable("refuses fields", Label("B2", "B5"), func(ctx SpecContext, spoil func(url.Values)) {
		form := filled()
		spoil(form)
		Expect(Post(ctx, page.Action, form)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
		lives(ctx)
	},
		Entry("with two tickets", repeat("ticket")),
		Entry("with two tokens", repeat("bearer_token")),
		Entry("with yes and no", func(v url.Values) { v["decision"] = []string{"deny", "approve"} }),
		Entry("without a decision", drop("decision")),
		Entry("with an empty decision", Label("A4"), set("decision", "")),
		Entry("with an invalid ticket", Label("B4"), set("ticket", "evil")),
	)

	DescribeTable("accepts a form", Label("B3"), func(ctx SpecContext, change func(*http.Request)) {
		Expect(Post(ctx, page.Action, filled(), change).StatusCode).To(Equal(http.StatusSeeOther))
	},
		Entry("of the same site", with("Sec-Fetch-Site", "same-origin")),
		Entry("with a null origin and Sec-Fetch-Site: same-origin", func(r *http.Request) {
			r.Header.Set("Origin", "null")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}),
		Entry("with a character set", Label("B1"),
			with("Content-Type", "Application/X-WWW-Form-URLencoded; charset=utf-8")),
	)

	It("accepts a token with what was copied around it", Label("B7"), func(ctx SpecContext) {
		for _, around := range []string{" \t\r\nTOKEN\n\f ", "\ufeff\u00a0TOKEN\u200b", "Authorization: Bearer TOKEN",
			"export DEMO_KEY='TOKEN'"} {
			Expect(page.Approve(ctx, strings.Replace(around, "TOKEN", world.Token, 1)).StatusCode).
				To(Equal(http.StatusSeeOther), around)
		}
	})

	It("grants exactly what the page showed, and ignores other fields", Label("B2", "B4"), func(ctx SpecContext) {
		form := filled()
		for name, value := range map[string]string{
			"client_id":      "https://evil.example/c",
			"redirect_uri":   "https://evil.example/",
			"scope":          "mcp admin",
			"state":          "evil",
			"code_challenge": "x",
			"resource":       "https://evil.example",
		} {
			form.Set(name, value)
		}
		answer := Post(ctx, page.Action, form)
		Expect(answer.Header.Get("Location")).
			To(And(HavePrefix(client.Redirect+"?code="), Not(ContainSubstring("evil"))))
		Expect(client.Token(ctx, client.Exchange(answer.Target().Query().Get("code"))).Tokens().Scope).
			To(Equal("mcp offline_access"))
	})

	It("leaves the other grants of a client alone", Label("B14"), func(ctx SpecContext) {
		first := client.Connect(ctx)
		second := client.Connect(ctx)
		Expect(world.Call(ctx, first.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Call(ctx, second.Access).StatusCode).To(Equal(http.StatusOK))
		client.Revoke(ctx, second.Refresh)
		Expect(world.Call(ctx, first.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("asks for the token every time", Label("B16"), func(ctx SpecContext) {
		client.Connect(ctx)
		Expect(client.Consent(ctx).Submit(ctx, url.Values{"decision": {"approve"}}).StatusCode).
			To(Equal(http.StatusBadRequest))
	})

	Context("when an error is behind a button", Label("B17"), func() {
		var withheld Page
		BeforeEach(func(ctx SpecContext) {
			parameters := client.Request()
			parameters.Set("redirect_uri", "https://client.example/callback")
			parameters.Set("response_type", "token")
			withheld = ReadPage(client.AskFor(ctx, parameters))
		})
		back := func(ctx SpecContext, change func(url.Values)) Response {
			GinkgoHelper()
			form := url.Values{"decision": {"return"}, "ticket": {withheld.Hidden.Get("ticket")}}
			change(form)
			return Post(ctx, withheld.Action, form)
		}

		It("redirects to the sealed address, and ignores other fields", func(ctx SpecContext) {
			answer := back(ctx, set("redirect_uri", "https://evil.example/"))
			Expect(answer.StatusCode).To(Equal(http.StatusSeeOther))
			Expect(answer.Header.Get("Location")).
				To(HavePrefix("https://client.example/callback?error=unsupported_response_type&"))
		})

		DescribeTable("does not redirect", func(ctx SpecContext, change func(url.Values)) {
			Expect(back(ctx, change)).To(BeASafePage(http.StatusBadRequest, "invalid_request"))
		},
			Entry("with a forged ticket", set("ticket", strings.Repeat("A", 120))),
			Entry("with the ticket of a consent page", func(v url.Values) {
				v.Set("ticket", page.Hidden.Get("ticket"))
			}),
			Entry("when it is approved instead", set("decision", "approve")),
			Entry("after ten minutes", func(url.Values) { world.Clock.Advance(10 * time.Minute) }),
		)
	})
})

var _ = Describe("Sending a consent form twice", Label("B13", "I5", "smoke", "stores"), func() {
	world := EachWorld()
	client := world.EachClient()
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

var _ = Describe("Pasting a token of Pasteport", Label("B7"), func() {
	const sentence = "This belongs to an app that was connected here."

	DescribeTable("says so on each page, and does not send it to the site:",
		func(ctx SpecContext, before, after string) {
			upstream := NewUpstream(apiKey)
			world := NewGateway(upstream.URL+"/mcp", func(config *service.Config) { config.AcceptHostTokens = true })
			client := world.NewClient()
			tokens := client.ConnectAs(ctx, apiKey)
			connected := len(upstream.Asked())
			for _, issued := range []string{tokens.Access, tokens.Refresh, "ppc_x", "pps_x"} {
				pasted := before + issued + after
				Expect(client.Consent(ctx).Approve(ctx, pasted)).To(BeAPage(http.StatusForbidden, sentence))
				Expect(world.Connections(ctx, pasted).Response).To(BeAPage(http.StatusForbidden, sentence))
				list := world.Connections(ctx, apiKey).Replace(ctx, pasted)
				Expect(list.Response).To(BeAPage(http.StatusForbidden, sentence))
				Expect(list.grants()).To(HaveLen(1))
				if pasted != tokens.Access {
					Expect(world.Call(ctx, pasted).StatusCode).To(Equal(http.StatusUnauthorized))
				}
			}
			Expect(upstream.Asked()).To(HaveLen(connected))
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		},
		Entry("alone", "", ""),
		Entry("behind the name of a variable", "API_KEY=", ""),
	)

	It("says so at its field where the site asks for several", Label("B23"), func(ctx SpecContext) {
		upstream := NewUpstreamReading(basicCredentials, "ann:key-of-ann-1234")
		world := NewGateway(upstream.URL+"/mcp", askingFor(userAndKey,
			"Authorization: Basic {base64(user:token)}", "X-Org: {org}"))
		client := world.NewClient()
		access := client.ConnectWith(ctx, "user", "ann", "token", "key-of-ann-1234").Access
		connected := len(upstream.Asked())
		answer := client.Consent(ctx).enter(ctx, "user", "ann", "token", "Bearer "+access, "org", "acme")
		Expect(answer).To(BeAPage(http.StatusForbidden, sentence))
		Expect(answer.Text).To(And(MatchRegexp(`id="field_token_problem">`+sentence), ContainSubstring(`value="ann"`)))
		Expect(upstream.Asked()).To(HaveLen(connected))
	})
})
