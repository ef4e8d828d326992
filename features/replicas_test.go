package features_test

import (
	"context"
	"net/http"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// listening opens each kind of long stream, and waits until it is established.
var listening = map[string]func(ctx context.Context, world *World, access string) *Stream{
	"HTTP+SSE": func(ctx context.Context, world *World, access string) *Stream {
		return world.Converse(ctx, httpSSE, access).Listen(ctx)
	},
	"the stream of a session": func(ctx context.Context, world *World, access string) *Stream {
		return world.Converse(ctx, sessions, access).Listen(ctx)
	},
	"a subscription": func(ctx context.Context, world *World, access string) *Stream {
		stream := Follow(world.Converse(ctx, stateless, access).
			message(ctx, "subscriptions/listen", params{"notifications": params{"toolsListChanged": true}}))
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).
			Should(Receive(HaveField("Data", ContainSubstring("notifications/subscriptions/acknowledged"))))
		return stream
	},
}

var _ = Describe("Closing streams of another process", Label("G16", "E9", "I22", "stores"), func() {
	open := map[string]func() *World{
		"a site":    func() *World { return NewWorld() },
		"a gateway": func() *World { return NewGateway(NewUpstream(apiKey).URL + "/mcp") },
	}
	for of, openWorld := range open {
		for kind, listen := range listening {
			// The server behind it does not support it.
			if of == "a gateway" && kind == "HTTP+SSE" || of == "a site" && kind == "a subscription" {
				continue
			}
			Context("of "+of+", "+kind, func() {
				var world *World
				var replica *Replica
				var client *Client
				var tokens Tokens
				BeforeEach(func(ctx SpecContext) {
					world = openWorld()
					replica, client = world.Replica(), world.NewClient()
					tokens = client.Connect(ctx)
				})
				streams := func(ctx context.Context) (stream, other *Stream) {
					GinkgoHelper()
					return listen(ctx, world, tokens.Access), listen(ctx, world, client.Connect(ctx).Access)
				}
				revoke := func(ctx context.Context, token string) {
					GinkgoHelper()
					Expect(Post(ctx, replica.Address+"/oauth/revoke", url.Values{"token": {token}}).StatusCode).
						To(Equal(http.StatusOK))
				}

				It("happens when the grant ends in another process, and affects no other grant",
					Label("E6"), func(ctx SpecContext) {
						stream, other := streams(ctx)
						revoke(ctx, tokens.Refresh)
						Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
						Expect(other.Events).NotTo(BeClosed())
					})

				It("happens when only its access token is revoked, and affects no other token of the grant",
					Label("E7"), func(ctx SpecContext) {
						stream, other := streams(ctx)
						next := client.Token(ctx, client.Refresh(tokens.Refresh)).Tokens()
						newer := listen(ctx, world, next.Access)
						revoke(ctx, tokens.Access)
						Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
						Expect(newer.Events).NotTo(BeClosed())
						Expect(other.Events).NotTo(BeClosed())
					})

				It("happens when an operator ends all grants", Label("I12"), func(ctx SpecContext) {
					stream, other := streams(ctx)
					ended := RunTyping(ctx, "", append([]string{"grants", "end", "--all", "--yes"}, world.Kept()...)...)
					Expect(ended.Code).To(BeZero(), ended.Err)
					for _, one := range []*Stream{stream, other} {
						Eventually(one.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
					}
				})
			})
		}
	}

	It("also closes an access token's streams in the process of the revocation", Label("E7"), func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		tokens := client.Connect(ctx)
		stream := world.Converse(ctx, sessions, tokens.Access).Listen(ctx)
		Expect(client.Revoke(ctx, tokens.Access).StatusCode).To(Equal(http.StatusOK))
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
	})

	It("ends the session, so that no newer grant can use it", Label("G14"), func(ctx SpecContext) {
		world := NewWorld()
		replica, tokens := world.Replica(), world.NewClient().Connect(ctx)
		talk := world.Converse(ctx, sessions, tokens.Access)
		stream := talk.Listen(ctx)
		Expect(replica.EndGrantsOf(ctx, world.Token)).To(Equal(1))
		Eventually(stream.Events).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
		talk.Access = world.NewClient().Connect(ctx).Access
		Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
	})
})
