package features_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("A change at one of three replicas", Label("E9", "G7", "I22", "stores"), func() {
	const elsewhere = 1500 * time.Millisecond
	var site *TokenSite
	var one *World
	var others []*Replica
	var client *Client
	var tokens Tokens
	BeforeEach(func(ctx SpecContext) {
		site = NewTokenSite(overHTTP.yes)
		one = NewWorld(func(config *service.Config) {
			config.Verification, config.RecheckEvery = overHTTP.configure(site.site.URL("/token")), time.Minute
		})
		passive := func(config *service.Config) { config.RecheckEvery = 0 }
		others = []*Replica{one.Replica(passive), one.Replica(passive)}
		client = one.NewClient()
		tokens = client.Connect(ctx)
	})

	// trustIt lets every replica have the grant in its cache. The first flush of uses empties it.
	trustIt := func(ctx context.Context) {
		GinkgoHelper()
		Consistently(func(g Gomega) {
			g.Expect(one.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			for _, other := range others {
				g.Expect(other.Call(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			}
		}).WithTimeout(1200 * time.Millisecond).Should(Succeed())
	}

	DescribeTable("ends a token at once there, and within 1.5 seconds elsewhere, by", Label("E6"),
		func(ctx SpecContext, end func(ctx context.Context)) {
			trustIt(ctx)
			end(ctx)
			Expect(one.Call(ctx, tokens.Access)).To(BeChallenged(one, "invalid_token"))
			within := time.Now().Add(elsewhere)
			for _, other := range others {
				Eventually(func() int { return other.Call(ctx, tokens.Access).StatusCode }).
					WithTimeout(max(time.Until(within), time.Millisecond)).Should(Equal(http.StatusUnauthorized))
			}
		},
		Entry("revocation of its grant", func(ctx context.Context) {
			Expect(client.Revoke(ctx, tokens.Refresh).StatusCode).To(Equal(http.StatusOK))
		}),
		Entry("its revocation", Label("E7"), func(ctx context.Context) {
			Expect(client.Revoke(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		}),
		Entry("the person", Label("J10"), func(ctx context.Context) {
			one.Connections(ctx, one.Token).End(ctx, "")
		}),
		Entry("the operator", Label("I12"), func(ctx context.Context) {
			Expect(one.service.Authz.EndGrants(ctx, func(oauth.Connection) bool { return true })).To(Equal(1))
		}),
		Entry("the site", func(ctx context.Context) {
			Expect(one.EndGrantsOf(ctx, one.Token)).To(Equal(1))
		}),
	)

	It("takes a role away at once there, and within 1.5 seconds elsewhere", Label("J8", "roles"),
		func(ctx SpecContext) {
			tools := func(at *World) []string {
				return at.Converse(ctx, stateless, tokens.Access).Ask(ctx, "tools/list", params{}).Tools()
			}
			trustIt(ctx)
			site.Answer(http.StatusOK, overHTTP.author)
			for _, other := range others {
				Expect(tools(other.World)).To(ConsistOf(editorTools))
			}
			one.Clock.Advance(time.Minute)
			Expect(tools(one)).To(ConsistOf(authorTools))
			within := time.Now().Add(elsewhere)
			for _, other := range others {
				Eventually(func() []string { return tools(other.World) }).
					WithTimeout(max(time.Until(within), time.Millisecond)).Should(ConsistOf(authorTools))
			}
		})
})
