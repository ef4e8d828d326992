package features_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// atMostGrants limits the connections of a host token.
func atMostGrants(limit int) func(*service.Config) {
	return func(config *service.Config) { config.Limits.MaxGrantsPerToken = limit }
}

var _ = Describe("Too many connections of one token", Label("J14", "stores"), func() {
	const limit = 3
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(atMostGrants(limit))
		client = world.NewClient()
	})
	connect := func(ctx context.Context) Tokens {
		world.Clock.Advance(time.Minute)
		return client.Connect(ctx)
	}

	It("end the least recently used one", Label("I12"), func(ctx SpecContext) {
		first, unused, third := connect(ctx), connect(ctx), connect(ctx)
		world.Clock.Advance(time.Minute)
		Expect(world.Call(ctx, first.Access).StatusCode).To(Equal(http.StatusOK))
		newest := connect(ctx)
		Expect(world.Call(ctx, unused.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(client.Token(ctx, client.Refresh(unused.Refresh))).
			To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
		for _, kept := range []Tokens{first, third, newest} {
			Expect(world.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		}
		Expect(world.Grants(ctx)).To(HaveLen(limit))
		Expect(world.Log.String()).To(ContainSubstring(`"reason":"ended_by_limit"`))
	})

	It("end no connection of another token, and do not count ended ones", func(ctx SpecContext) {
		other := client.ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author))
		kept := connect(ctx)
		for range limit {
			client.Revoke(ctx, connect(ctx).Refresh)
		}
		for range limit - 1 {
			connect(ctx)
		}
		Expect(world.Call(ctx, other.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Call(ctx, kept.Access).StatusCode).To(Equal(http.StatusOK))
		Expect(world.Grants(ctx)).To(HaveLen(limit + 1))
	})

	It("count too if they were made under an earlier server secret", Label("J2"), func(ctx SpecContext) {
		oldest := connect(ctx)
		for range limit - 1 {
			connect(ctx)
		}
		world.RotateKeys(ctx)
		connect(ctx)
		Expect(world.Call(ctx, oldest.Access)).To(BeChallenged(world, "invalid_token"))
		Expect(world.Grants(ctx)).To(HaveLen(limit))
	})

	It("are back at the limit one approval after simultaneous approvals", Label("I14"), func(ctx SpecContext) {
		for range limit {
			connect(ctx)
		}
		pages := make(chan Page, 4) // below the limit of concurrent guesses from one address
		for range cap(pages) {
			pages <- client.Consent(ctx)
		}
		for _, answer := range atOnce(cap(pages), func() Response { return (<-pages).Approve(ctx, world.Token) }) {
			Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
		}
		connect(ctx)
		Expect(world.Grants(ctx)).To(HaveLen(limit))
	})

	It("are ended too when the token replaces another one, however often", Label("J19"), func(ctx SpecContext) {
		const newKey, ada = "the-new-key-of-the-person", `{"subject":"ada","roles":["editor"]}`
		site := NewKeySite(map[string]string{editorToken: ada, newKey: ada})
		world = NewWorld(site.Verify, atMostGrants(limit))
		client = world.NewClient()
		var newest Tokens
		for range 3 {
			for range limit {
				newest = connect(ctx)
			}
			Expect(world.service.Authz.ReplaceHostToken(ctx, world.Token, newKey)).To(Equal(limit))
			Expect(world.Grants(ctx)).To(HaveLen(limit))
		}
		Expect(world.Call(ctx, newest.Access).StatusCode).To(Equal(http.StatusOK))
	})

	It("are counted in the metrics, and the trace of an ended connection names the setting",
		Label("operations", "trace"), func(ctx SpecContext) {
			operated := Operate(atMostGrants(1))
			for range 2 {
				operated.NewClient().Connect(ctx)
				operated.Clock.Advance(time.Minute)
			}
			Expect(operated.AskAdmin(ctx, "/metrics").Text).
				To(ContainSubstring(`pasteport_limits_total{effect="evicted",limit="grants"} 1`))
			Eventually(func() (shown string) {
				for _, traced := range operated.Traces(ctx) {
					shown += Run(ctx, append([]string{"trace", traced.ID}, operated.Kept()...)...).Out
				}
				return shown
			}).WithContext(ctx).WithTimeout(patience).
				Should(ContainSubstring("its token had more connections than max-grants-per-token allows"))
		})
})
