package features_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

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
