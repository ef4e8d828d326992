package features_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Refreshing", Label("RFC 6749 §6", "OAuth 2.1 §4.3.1", "smoke", "stores"), func() {
	var world *World
	var client *Client
	var tokens Tokens
	BeforeEach(func(ctx SpecContext) {
		world = NewWorld()
		client = world.NewClient()
		tokens = client.Connect(ctx)
	})

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
