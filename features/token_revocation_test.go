package features_test

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Revoking", Label("RFC 7009", "smoke", "stores"), func() {
	var world *World
	var client *Client
	var tokens Tokens
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld()
		client = world.NewClient()
		tokens = client.Connect(ctx)
	})
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
