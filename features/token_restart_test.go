package features_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Restarting", Label("J2"), func() {
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld()
		client = world.NewClient()
	})

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
