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
