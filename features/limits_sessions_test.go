package features_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/demosite"
	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("The session limits", Label("G20"), func() {
	atMost := func(all, perPerson int) func(*service.Config) {
		return func(config *service.Config) {
			config.Limits.MaxSessions, config.Limits.MaxSessionsPerPerson = all, perPerson
		}
	}
	listTools := func(ctx context.Context, talk *Conversation) int {
		return talk.Post(ctx, "tools/list", params{}).StatusCode
	}
	// open opens a session that is idle from then on. The server answers the notification that it
	// begins with before handling it, and answers a request after both.
	open := func(ctx context.Context, world *World, access string) *Conversation {
		GinkgoHelper()
		talk := world.Converse(ctx, sessions, access)
		Expect(listTools(ctx, talk)).To(Equal(http.StatusOK))
		return talk
	}
	// hoard opens sessions of one person, each with another client.
	hoard := func(ctx context.Context, world *World, n int) (talks []*Conversation) {
		GinkgoHelper()
		for range n {
			talks = append(talks, open(ctx, world, world.NewClient().Connect(ctx).Access))
		}
		return talks
	}

	It("allow another person to open sessions while one connects many clients", func(ctx SpecContext) {
		const share = 5
		world := NewWorld(atMost(2*share, share))
		hoarded := hoard(ctx, world, 3*share)
		other := world.NewClient().ConnectAs(ctx, world.TokenFor(ctx, "ada", demosite.Author)).Access
		for range share {
			open(ctx, world, other)
		}
		for i, talk := range hoarded {
			Expect(listTools(ctx, talk)).
				To(Equal(map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[i < 2*share]), "session %d", i)
		}
	})

	It("end a session of the person with the most sessions for each new one at the total limit", func(ctx SpecContext) {
		world := NewWorld(atMost(6, 6))
		hoarded := hoard(ctx, world, 6)
		var others []*Conversation
		for _, name := range []string{"ada", "bob", "cyd"} {
			access := world.NewClient().ConnectAs(ctx, world.TokenFor(ctx, name, demosite.Author)).Access
			others = append(others, open(ctx, world, access))
		}
		for _, talk := range append(others, hoarded[3:]...) {
			Expect(listTools(ctx, talk)).To(Equal(http.StatusOK))
		}
		for _, talk := range hoarded[:3] {
			Expect(listTools(ctx, talk)).To(Equal(http.StatusNotFound))
		}
	})

	It("count ended sessions in the metrics, and name the setting in the trace",
		Label("operations", "trace"), func(ctx SpecContext) {
			operated := Operate(atMost(10, 1))
			talks := hoard(ctx, operated.World, 2)
			Expect(listTools(ctx, talks[0])).To(Equal(http.StatusNotFound))
			Expect(operated.AskAdmin(ctx, "/metrics").Text).
				To(ContainSubstring(`pasteport_limits_total{effect="evicted",limit="sessions"} 1`))
			Eventually(func() string {
				var shown string
				for _, traced := range operated.Traces(ctx) {
					shown += Run(ctx, append([]string{"trace", traced.ID}, operated.Kept()...)...).Out
				}
				return shown
			}).WithContext(ctx).WithTimeout(patience).
				Should(And(ContainSubstring("G20"), ContainSubstring("max-sessions-per-person")))
		})

	It("end the oldest stream of a person through a gateway", Label("gateway"), func(ctx SpecContext) {
		world := NewGateway(NewUpstream(apiKey).URL+"/mcp", atMost(10, 1))
		first := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access).Listen(ctx)
		second := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access).Listen(ctx)
		Eventually(first.Events).WithTimeout(patience).Should(BeClosed())
		Consistently(second.Events).WithContext(ctx).ShouldNot(BeClosed())
	})
})
