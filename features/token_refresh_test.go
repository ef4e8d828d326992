package features_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Refreshing", Label("RFC 6749 §6", "OAuth 2.1 §4.3.1", "smoke", "stores"), func() {
	world := EachWorld()
	client := world.EachClient()
	var tokens Tokens
	BeforeEach(func(ctx SpecContext) { tokens = client.Connect(ctx) })

	It("returns a new access token and a new refresh token", Label("D26"), func(ctx SpecContext) {
		next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		Expect(next.Access).To(And(HavePrefix("ppa_"), Not(Equal(tokens.Access))))
		Expect(next.Refresh).To(And(HavePrefix("ppr_"), Not(Equal(tokens.Refresh))))
		Expect(next.Scope).To(Equal("mcp offline_access"))
		Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("ends the grant when a replaced token is reused after the grace window",
		Label("D27", "I12"), func(ctx SpecContext, use func(context.Context, Tokens) Tokens) {
			next := use(ctx, client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens())
			world.Clock.Advance(5 * time.Minute)
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
			Expect(client.Token(ctx, client.Refresh(next.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
			Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusUnauthorized))
		},
		Entry("and its successor was refreshed", func(ctx context.Context, next Tokens) Tokens {
			return client.Token(ctx, client.Refresh(next.Refresh)).Tokens()
		}),
		Entry("and the access token of its successor was used", func(ctx context.Context, next Tokens) Tokens {
			Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
			return next
		}),
	)

	It("limits the scope of the new access token only", Label("D24"), func(ctx SpecContext) {
		form := client.Refresh(tokens.Refresh)
		form.Set("scope", "mcp")
		next := client.Token(ctx, form).Tokens()
		Expect(next.Scope).To(Equal("mcp"))
		Expect(client.Token(ctx, client.Refresh(next.Refresh)).Tokens().Scope).To(Equal("mcp offline_access"))
	})

	It("extends the idle lifetime by thirty days", Label("D23", "D28", "I11"), func(ctx SpecContext) {
		world.Clock.Advance(29 * 24 * time.Hour)
		next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		world.Clock.Advance(29 * 24 * time.Hour)
		next = client.Token(ctx, client.Refresh(next.Refresh)).Tokens()
		Expect(next.Refresh).NotTo(BeEmpty())
		world.Clock.Advance(30 * 24 * time.Hour)
		Expect(client.Token(ctx, client.Refresh(next.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
	})

	It("does not work after half a year", Label("D28"), func(ctx SpecContext) {
		for range 8 {
			world.Clock.Advance(22 * 24 * time.Hour)
			tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
			Expect(tokens.Error).To(BeEmpty())
		}
		world.Clock.Advance(4*24*time.Hour - 10*time.Minute)
		tokens = client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		Expect(tokens.ExpiresIn).To(And(BeNumerically(">", 0), BeNumerically("<=", 600)))
		world.Clock.Advance(10 * time.Minute)
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
	})

	It("rechecks the host token with the site, and ends the grant when it was revoked",
		Label("D25", "J1", "J6", "N12"), func(ctx SpecContext) {
			Expect(world.Site().RevokeToken(world.Token)).To(Succeed())
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
		})
})

var _ = Describe("Rechecking the host token during use", Label("J8", "N12", "stores"), func() {
	world := EachWorld(func(config *service.Config) { config.RecheckEvery = time.Minute })

	It("ends the grant within the interval after the site has revoked its token", func(ctx SpecContext) {
		client := world.NewClient()
		short, rotated := client.Connect(ctx, set("scope", "mcp")), client.Connect(ctx)
		client.Token(ctx, client.Refresh(rotated.Refresh))
		rotated = client.Token(ctx, client.Refresh(rotated.Refresh)).Tokens()
		all := []Tokens{short, client.Connect(ctx), rotated}
		work := func(status int) {
			GinkgoHelper()
			for _, tokens := range all {
				Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(status))
			}
		}
		world.Clock.Advance(time.Minute)
		work(http.StatusOK)
		Expect(world.Site().RevokeToken(world.Token)).To(Succeed())
		work(http.StatusOK)
		world.Clock.Advance(time.Minute)
		work(http.StatusUnauthorized)
		Expect(client.Token(ctx, client.Refresh(rotated.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
	})
})

var _ = Describe("Restarting", Label("J2"), func() {
	world := EachWorld()
	client := world.EachClient()

	It("keeps tokens", func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		world.Restart()
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		next := client.Token(ctx, client.Refresh(tokens.Refresh))
		Expect(next.StatusCode).To(Equal(http.StatusOK), next.Text)
		world.Restart()
		Expect(world.Call(ctx, next.Tokens().Access).StatusCode).To(Equal(http.StatusOK))
		Expect(client.Token(ctx, client.Refresh(next.Tokens().Refresh)).StatusCode).To(Equal(http.StatusOK))
	})

	It("keeps codes", func(ctx SpecContext) {
		code := client.Authorize(ctx)
		world.Restart()
		Expect(client.Token(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusOK))
	})

	It("keeps open consent pages valid", Label("B4"), func(ctx SpecContext) {
		page := client.Consent(ctx)
		world.Restart()
		Expect(page.Approve(ctx, world.Token).StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("keeps ended grants ended", func(ctx SpecContext) {
		tokens := client.Connect(ctx)
		client.Revoke(ctx, tokens.Refresh)
		world.Restart()
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
	})
})

var _ = Describe("Revoking", Label("RFC 7009", "smoke", "stores"), func() {
	world := EachWorld()
	client := world.EachClient()
	var tokens Tokens
	BeforeEach(func(ctx SpecContext) { tokens = client.Connect(ctx) })
	revoke := func(ctx SpecContext, form url.Values) Response {
		return Post(ctx, world.Issuer+"/oauth/revoke", form)
	}

	It("ends the grant of a refresh token before the next request", Label("E6", "E9"), func(ctx SpecContext) {
		answer := client.Revoke(ctx, tokens.Refresh)
		Expect(answer.StatusCode).To(Equal(http.StatusOK))
		Expect(answer.Text).To(BeEmpty())
		Expect(answer.Header.Get("Cache-Control")).To(Equal("no-store"))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
	})

	It("ends the grant of a long-replaced refresh token", Label("E6"), func(ctx SpecContext) {
		next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		last := client.Token(ctx, client.Refresh(next.Refresh)).Tokens()
		client.Revoke(ctx, tokens.Refresh)
		Expect(world.Call(ctx, last.Access).StatusCode).To(Equal(http.StatusUnauthorized))
	})

	It("ends only the given access token", Label("E7"), func(ctx SpecContext) {
		next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
		client.Revoke(ctx, tokens.Access)
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(world.Call(ctx, next.Access).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("responds with 200 and does nothing", func(ctx SpecContext, form func() url.Values) {
		answer := revoke(ctx, form())
		Expect(answer.StatusCode).To(Equal(http.StatusOK))
		Expect(answer.Text).To(BeEmpty())
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	},
		Entry("without a token", Label("E3"), func() url.Values { return url.Values{} }),
		Entry("with an empty token", Label("E3"), func() url.Values { return url.Values{"token": {""}} }),
		Entry("with garbage", Label("E2"), func() url.Values { return url.Values{"token": {"garbage"}} }),
		Entry("with an unknown token", Label("E2"), func() url.Values {
			return url.Values{"token": {"ppr_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}
		}),
		Entry("for another client's token", Label("E2", "E4"), func() url.Values {
			return url.Values{"token": {tokens.Refresh}, "client_id": {"https://other.example/c.json"}}
		}),
	)

	It("responds with 200 and does nothing for a code", Label("E8"), func(ctx SpecContext) {
		code := client.Authorize(ctx)
		Expect(client.Revoke(ctx, code)).To(And(HaveField("StatusCode", http.StatusOK), HaveField("Text", BeEmpty())))
		Expect(client.Token(ctx, client.Exchange(code)).StatusCode).To(Equal(http.StatusOK))
	})

	It("responds with 200 for a revoked or expired token", Label("E2"), func(ctx SpecContext) {
		client.Revoke(ctx, tokens.Refresh)
		for _, token := range []string{tokens.Refresh, tokens.Access} {
			Expect(client.Revoke(ctx, token)).
				To(And(HaveField("StatusCode", http.StatusOK), HaveField("Text", BeEmpty())))
		}
		old := client.Connect(ctx)
		world.Clock.Advance(181 * 24 * time.Hour)
		Expect(client.Revoke(ctx, old.Refresh)).
			To(And(HaveField("StatusCode", http.StatusOK), HaveField("Text", BeEmpty())))
	})

	DescribeTable("finds the token", func(ctx SpecContext, extra url.Values) {
		extra.Set("token", tokens.Refresh)
		Expect(revoke(ctx, extra).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
	},
		Entry("without a client_id", Label("E4"), url.Values{}),
		Entry("with a wrong hint", Label("E5"), url.Values{"token_type_hint": {"access_token"}}),
		Entry("with an unknown hint", Label("E5"), url.Values{"token_type_hint": {"cookie"}}),
	)

	It("follows the HTTP rules of the token endpoint", Label("E1"), func(ctx SpecContext) {
		target, form := world.Issuer+"/oauth/revoke", url.Values{"token": {tokens.Refresh}}
		Expect(Post(ctx, target, form, func(r *http.Request) {
			r.Header.Set("Content-Type", "text/plain")
		})).To(BeRefusedAs(400, "invalid_request"))
		Expect(Post(ctx, target+"?token=x", form)).To(BeRefusedAs(400, "invalid_request"))
		Expect(Post(ctx, target, form, basic(client.ID, "secret"))).To(BeRefusedAs(401, "invalid_client"))
		Expect(Post(ctx, target, form, body("token="+strings.Repeat("x", 32<<10)))).
			To(BeRefusedAs(413, "invalid_request"))
		Expect(Post(ctx, target, form, body("token=%e"))).To(BeRefusedAs(400, "invalid_request"))
		Expect(Post(ctx, target, url.Values{"token": {tokens.Refresh, tokens.Refresh}})).
			To(BeRefusedAs(400, "invalid_request"))
		Expect(Post(ctx, target, url.Values{"token": {tokens.Refresh}, "client_secret": {"s3cret"}})).
			To(BeRefusedAs(401, "invalid_client"))
		Expect(request(ctx, http.MethodOptions, target, nil).StatusCode).To(Equal(http.StatusNoContent))
		Expect(request(ctx, http.MethodGet, target, nil)).To(BeRefusedAs(405, "invalid_request"))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("lets the site end all grants of one of its tokens", Label("J1", "J10", "N12"), func(ctx SpecContext) {
		second := world.NewClient().Connect(ctx)
		Expect(world.EndGrantsOf(ctx, world.Token)).To(Equal(2))
		Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(world.Call(ctx, second.Access).StatusCode).To(Equal(http.StatusUnauthorized))
	})
})
