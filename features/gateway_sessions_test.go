package features_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Keeping the sessions of an upstream apart", Label("gateway", "U12"), func() {
	var upstream *UpstreamServer
	BeforeEach(func() { upstream = NewUpstream(apiKey) })

	It("refuses the session of another owner without asking the upstream, also after a restart", func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		mine := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		theirs := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		asked := len(upstream.Asked())
		for _, session := range []string{theirs.session, mine.session + "x", "x" + mine.session,
			strings.TrimRight(mine.session, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"), "",
			"."} {
			answer := mine.Post(ctx, "tools/list", params{}, with("Mcp-Session-Id", session))
			Expect(answer.StatusCode).To(Equal(http.StatusNotFound), session)
			Expect(answer.Text).To(ContainSubstring("the session does not exist"))
		}
		twice := mine.Post(ctx, "tools/list", params{}, func(r *http.Request) {
			r.Header.Add("Mcp-Session-Id", theirs.session)
		})
		Expect(twice.StatusCode).To(Equal(http.StatusNotFound))
		Expect(upstream.Asked()).To(HaveLen(asked))
		world.Restart()
		Expect(mine.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3))
		Expect(Send(mine.Request(ctx, http.MethodDelete)).StatusCode).To(Equal(http.StatusNoContent))
		Expect(mine.Post(ctx, "tools/list", params{}).StatusCode).
			To(Equal(http.StatusNotFound), "the upstream's own response")
	})

	It("allows a session for a later grant of the same client and key, as after a step-up, but not for other keys",
		Label("G14"), func(ctx SpecContext) {
			upstream := NewUpstream(apiKey, "another-key")
			world := NewGateway(upstream.URL + "/mcp")
			client := world.NewClient()
			mine := world.Converse(ctx, sessions, client.Connect(ctx).Access)
			mine.Access = client.Connect(ctx).Access
			Expect(mine.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3))
			world.Token = "another-key"
			mine.Access = client.Connect(ctx).Access
			Expect(mine.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		})
})
