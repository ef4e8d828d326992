package features_test

import (
	"context"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// unauthorizedUnless responds with 401 to the gateway's clients, as many servers do for unknown
// sessions. The verifier's requests, which have no X-Request-Id, get the response of a server that
// accepts the key.
func unauthorizedUnless(passes func(*http.Request) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Request-Id") == "" || passes(r) {
			if r.Method == http.MethodGet {
				w.Header().Set("Content-Type", "text/event-stream")
				return
			}
			failing(http.StatusOK, "application/json", resultOfMCP)(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate",
			`Bearer error="invalid_token", error_description="No valid session ID provided"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
}

const resultOfMCP = `{"jsonrpc":"2.0","id":1,"result":{}}`

var unauthorized = unauthorizedUnless(func(*http.Request) bool { return false })

var _ = Describe("Distinguishing a 401 for an invalid key from other 401s",
	Label("gateway", "U8", "U16", "U17"), func() {
		var upstream *UpstreamServer
		BeforeEach(func() { upstream = NewUpstream(apiKey) })

		expectAlive := func(ctx context.Context, world *World, access string) {
			GinkgoHelper()
			upstream.Answer(nil)
			Expect(world.Call(ctx, access).StatusCode).To(Equal(http.StatusOK), "the grant is active")
			Expect(world.Log.String()).NotTo(ContainSubstring("grant_ended"))
		}

		DescribeTable("responds with 404 in a session that the upstream has lost, so that the client opens a new one:",
			func(ctx SpecContext, method string, adjust ...func(*service.Config)) {
				world := NewGateway(upstream.URL+"/mcp", adjust...)
				access := world.NewClient().Connect(ctx).Access
				talk := world.Converse(ctx, sessions, access)
				upstream.Answer(unauthorized)
				r := talk.Request(ctx, method)
				if method == http.MethodPost {
					r = talk.message(ctx, "tools/list", params{})
				}
				Expect(Send(r)).
					To(And(HaveField("StatusCode", http.StatusNotFound),
						HaveField("Header", Not(HaveKey("Www-Authenticate")))))
				expectAlive(ctx, world, access)
				Expect(world.Converse(ctx, sessions, access).Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3))
			},
			Entry(nil, http.MethodPost), Entry(nil, http.MethodGet), Entry(nil, http.MethodDelete),
			Entry("also with the gateway's own key", Label("U7"), http.MethodPost, func(c *service.Config) {
				static(ada(apiKey))(c)
			}),
		)

		It("responds with 502 and the reason without a session", func(ctx SpecContext) {
			world := NewGateway(upstream.URL + "/mcp")
			access := world.NewClient().Connect(ctx).Access
			talk := world.Converse(ctx, stateless, access)
			upstream.Answer(unauthorized)
			Expect(talk.Post(ctx, "tools/call", params{"name": "shout", "arguments": params{"text": "x"}})).To(
				haveFailed(http.StatusBadGateway, "answered 401, although the person's token is valid"))
			expectAlive(ctx, world, access)
		})

		It("does not end the grant of a revoked key at a GET or DELETE of a session, but at the next call",
			Label("I12"), func(ctx SpecContext) {
				world := NewGateway(upstream.URL + "/mcp")
				talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
				upstream.Revoke()
				for _, method := range []string{http.MethodGet, http.MethodDelete} {
					Expect(Send(talk.Request(ctx, method)).StatusCode).To(Equal(http.StatusNotFound))
				}
				Expect(world.Log.String()).NotTo(ContainSubstring("grant_ended"))
				Expect(talk.Post(ctx, "tools/list", params{})).To(BeChallenged(world, "invalid_token"))
				Expect(world.Log.String()).To(ContainSubstring(`"reason":"host_token_invalid"`))
			})

		It("verifies the key once for many simultaneous refused calls, and not again immediately",
			func(ctx SpecContext) {
				world := NewGateway(upstream.URL + "/mcp")
				access := world.NewClient().Connect(ctx).Access
				talk := world.Converse(ctx, stateless, access)
				asked, verified := make(chan struct{}, 100), make(chan struct{})
				upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Request-Id") == "" {
						asked <- struct{}{}
						<-verified
					}
					unauthorized(w, r)
				})
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						defer GinkgoRecover()
						Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusBadGateway))
					})
				}
				Eventually(func() int {
					return len(upstream.Asked())
				}).WithContext(ctx).WithTimeout(patience).Should(Equal(8))
				close(verified)
				all.Wait()
				Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusBadGateway))
				Expect(asked).To(HaveLen(1))
			})

		It("responds with Retry-After when the key cannot be verified, and does not end the grant",
			Label("B9"), func(ctx SpecContext) {
				world := NewGateway(upstream.URL + "/mcp")
				access := world.NewClient().Connect(ctx).Access
				talk := world.Converse(ctx, sessions, access)
				upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Request-Id") == "" {
						w.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					unauthorized(w, r)
				})
				answer := talk.Post(ctx, "tools/list", params{})
				Expect(answer).To(And(HaveField("StatusCode", http.StatusServiceUnavailable),
					HaveField("Header", HaveKey("Retry-After"))))
				Expect(answer.Text).To(ContainSubstring("cannot be verified just now"))
				expectAlive(ctx, world, access)
			})

		It("verifies keys with a server that responds with 401 to every request without a session but initialize",
			Label("U14"), func(ctx SpecContext) {
				world := NewGateway(upstream.URL + "/mcp")
				upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Mcp-Method") == "server/discover" || r.Method == http.MethodGet {
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					failing(http.StatusOK, "application/json", resultOfMCP)(w, r)
				})
				client := world.NewClient()
				Expect(client.Consent(ctx).Approve(ctx, "another-key")).To(BeAPage(http.StatusForbidden, ""))
				Expect(client.Consent(ctx).Approve(ctx, apiKey).StatusCode).To(Equal(http.StatusSeeOther))
			})
	})
