package features_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Unknown tokens of one address", Label("D31"), func() {
	const unknown = "ppr_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	var world *World
	var client *Client
	BeforeEach(func() {
		world = NewWorld(behind("127.0.0.1/32"))
		world.Clock.Stop()
		client = world.NewClient()
	})
	from := func(ctx context.Context, address string, form url.Values) Response {
		return client.Token(ctx, form, forwarded(address))
	}
	exhaust := func(ctx context.Context) {
		GinkgoHelper()
		for range oauth.UnknownTokensPerMinute {
			Expect(from(ctx, office, client.Refresh(unknown))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
		}
		Expect(from(ctx, office, client.Refresh(unknown)).StatusCode).To(Equal(http.StatusTooManyRequests))
	}

	It("are refused above the limit until the next one is allowed, without affecting other addresses",
		func(ctx SpecContext) {
			exhaust(ctx)
			world.Clock.Advance(time.Second / 4)
			for _, form := range []url.Values{client.Refresh(unknown), client.Refresh("garbage"),
				client.Exchange("garbage")} {
				refused := from(ctx, office, form)
				Expect(refused).To(BeRefusedAs(http.StatusTooManyRequests, "temporarily_unavailable"))
				Expect(refused.Header.Get("Retry-After")).To(Equal("1"))
			}
			Expect(from(ctx, "203.0.113.8", client.Refresh(unknown))).
				To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			world.Clock.Advance(time.Second)
			Expect(from(ctx, office, client.Refresh(unknown))).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			Expect(from(ctx, office, client.Refresh(unknown)).StatusCode).To(Equal(http.StatusTooManyRequests))
		})

	It("do not affect exchanges and refreshes with known tokens", func(ctx SpecContext) {
		exhaust(ctx)
		exchanged := from(ctx, office, client.Exchange(client.Authorize(ctx)))
		Expect(exchanged.StatusCode).To(Equal(http.StatusOK), exchanged.Text)
		Expect(from(ctx, office, client.Refresh(exchanged.Tokens().Refresh)).StatusCode).To(Equal(http.StatusOK))
	})

	DescribeTable("do not include a known token that is refused",
		func(ctx SpecContext, refused func(context.Context) url.Values) {
			form := refused(ctx)
			for range 2 * oauth.UnknownTokensPerMinute {
				Expect(from(ctx, office, form)).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			}
			exhaust(ctx)
			Expect(from(ctx, office, form)).To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
		},
		Entry("with a wrong verifier", func(ctx context.Context) url.Values {
			form := client.Exchange(client.Authorize(ctx))
			form.Set("code_verifier", "another-verifier-that-is-long-enough-for-the-rules")
			return form
		}),
		Entry("because its grant has ended", func(ctx context.Context) url.Values {
			revoked := client.Connect(ctx).Refresh
			client.Revoke(ctx, revoked)
			return client.Refresh(revoked)
		}),
	)

	It("do not include malformed requests", func(ctx SpecContext) {
		for range oauth.UnknownTokensPerMinute {
			for _, name := range []string{"refresh_token", "grant_type", "client_id"} {
				form := client.Refresh(unknown)
				form.Del(name)
				Expect(from(ctx, office, form)).To(BeRefusedAs(http.StatusBadRequest, "invalid_request"))
			}
		}
	})

	It("appear in the trace with what to do", Label("trace"), func(ctx SpecContext) {
		exhaust(ctx)
		Eventually(func() string {
			return Run(ctx, append([]string{"trace"}, world.Kept()...)...).Out
		}).WithContext(ctx).WithTimeout(patience).
			Should(And(ContainSubstring("D31"), ContainSubstring("unlimited-networks")))
	})
})

var _ = Describe("Ending every grant of an office", Label("D31", "I12"), func() {
	It("lets all of its clients reconnect immediately from one address", func(ctx SpecContext) {
		const clients = 150
		world := NewWorld(behind("127.0.0.1/32"), func(config *service.Config) {
			config.Limits.MaxGrantsPerToken = 2 * clients
		})
		client := world.NewClient()
		held := make([]string, 0, clients)
		for range clients {
			held = append(held, client.Connect(ctx).Refresh)
		}
		ended := Run(ctx, append([]string{"grants", "end", "--all", "--yes"}, world.Kept()...)...)
		Expect(ended.Out).To(HaveSuffix(fmt.Sprintf("ended: %d\n", clients)), ended.Err)
		fromOffice := forwarded(office)
		for _, token := range held {
			Expect(client.Token(ctx, client.Refresh(token), fromOffice)).
				To(BeRefusedAs(http.StatusBadRequest, "invalid_grant"))
			again := client.Token(ctx, client.Exchange(client.Authorize(ctx)), fromOffice)
			Expect(again.StatusCode).To(Equal(http.StatusOK), again.Text)
		}
	})
})
