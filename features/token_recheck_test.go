package features_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Rechecking the host token during use", Label("J8", "N12", "stores"), func() {
	var world *World
	BeforeEach(func() {
		world = NewWorld(func(config *service.Config) { config.RecheckEvery = time.Minute })
	})

	DescribeTable("ends the grant within the interval after the site has revoked its token",
		func(ctx SpecContext, scope string, prepare func(SpecContext, *Client, Tokens) Tokens) {
			client := world.NewClient()
			tokens := prepare(ctx, client, client.Connect(ctx, set("scope", scope)))
			world.Clock.Advance(time.Minute)
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Site().RevokeToken(world.Token)).To(Succeed())
			Expect(world.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			world.Clock.Advance(time.Minute)
			Expect(world.Call(ctx, tokens.Access)).
				To(And(HaveField("StatusCode", http.StatusUnauthorized), HaveField("Tokens().Error", "invalid_token")))
			if tokens.Refresh != "" {
				Expect(client.Token(ctx, client.Refresh(tokens.Refresh))).To(BeRefusedAs(400, "invalid_grant"))
			}
		},
		Entry("with refresh tokens", "mcp offline_access", func(_ SpecContext, _ *Client, t Tokens) Tokens {
			return t
		}),
		Entry("without refresh tokens", "mcp", func(_ SpecContext, _ *Client, t Tokens) Tokens { return t }),
		Entry("after a refresh", "mcp offline_access", func(ctx SpecContext, c *Client, t Tokens) Tokens {
			return c.Token(ctx, c.Refresh(t.Refresh)).Tokens()
		}),
		Entry("after two refreshes with one token",
			"mcp offline_access", func(ctx SpecContext, c *Client, t Tokens) Tokens {
				c.Token(ctx, c.Refresh(t.Refresh))
				return c.Token(ctx, c.Refresh(t.Refresh)).Tokens()
			}),
	)
})
