package features_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// ofItself verifies tokens without the upstream, so that a spec can break the upstream.
func ofItself() func(*service.Config) {
	verification := ada(apiKey)
	return func(c *service.Config) {
		c.Gateway.Patience = time.Second
		c.Verification = verification
	}
}

func redirected(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
}

// hanging never responds, even when the client disconnects: an empty response could arrive before
// the client's timeout.
func hanging(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

func forgetful(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }

var _ = Describe("Checking a gateway", Label("gateway", "doctor"), func() {
	examine := func(ctx context.Context, world *World, more ...string) Diagnosis {
		GinkgoHelper()
		return Diagnose(ctx, append(more, world.MCP(), "--token", apiKey, "--origin", world.Issuer)...)
	}

	DescribeTable("passes every check, including a whole login, when the upstream", func(ctx SpecContext, path string) {
		service, _ := operateChecked(ctx, NewUpstream(apiKey).URL+path)
		d := examine(ctx, service.World, "--admin-addr",
			service.Admin[len("http://"):])
		Expect(d.With("ok")).To(HaveLen(11), d.Out)
		Expect(d.Of("login").Seen).To(ContainSubstring("tools (delete_all, "), "what the rules for tools leave")
		Expect(d.Code).To(BeZero())
	},
		Entry("has sessions", "/mcp"),
		Entry("has no sessions and no stream", "/stateless"),
	)

	DescribeTable("names the upstream as the cause when it",
		Label("U9"), func(ctx SpecContext, answer http.HandlerFunc, seen string) {
			upstream := NewUpstream(apiKey)
			world := NewGateway(upstream.URL+"/mcp", ofItself())
			upstream.Answer(answer)
			d := examine(ctx, world, "--timeout", "3s")
			Expect(d.With("failed")).To(Equal([]string{"login"}), d.Out)
			Expect(d.Of("login").Seen).To(ContainSubstring("The MCP server behind this gateway " + seen))
			Expect(d.Of("login").Fix).To(HavePrefix("Check the MCP server behind the gateway"))
			Expect(d.Of("login").Fix).To(ContainSubstring("at the exact address in upstream"))
		},
		Entry("hangs up", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, "cannot be reached"),
		Entry("redirects", redirected, "redirects, which is not followed"),
		Entry("is slow", Label("long"), hanging, "did not answer in time"),
	)

	It("reports a slow server when doctor's own timeout ends", Label("long"), func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		world := NewGateway(upstream.URL+"/mcp", ofItself(), func(c *service.Config) {
			c.Gateway.Patience = time.Minute
		})
		upstream.Answer(hanging)
		// All earlier checks must finish within it, on a slow computer too.
		d := examine(ctx, world, "--timeout", "4s")
		// The limit of the request, or that of the login, ends first.
		Expect(d.Of("login").Seen).To(MatchRegexp("Client.Timeout|deadline exceeded"), d.Out)
		Expect(d.Of("login").Fix).To(ContainSubstring("the one behind the gateway"))
	})

	It("reports an MCP server that refuses a valid token of the site", Label("U17"), func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		world := NewGateway(upstream.URL+"/mcp", ofItself())
		upstream.Answer(forgetful)
		d := examine(ctx, world)
		Expect(d.With("failed")).To(ContainElement("login"))
		Expect(d.Of("login").Seen).To(ContainSubstring("answered 401, although the person's token is valid"))
		Expect(d.Of("login").Fix).To(ContainSubstring("accept the same tokens as the verifier"))
	})

	It("suspects present when the MCP server expects the token in another header", Label("U14", "B9"),
		func(ctx SpecContext) {
			upstream := NewUpstreamReading(func(r *http.Request) string { return r.Header.Get("X-Api-Key") }, apiKey)
			d := examine(ctx, NewGateway(upstream.URL+"/mcp"))
			Expect(d.With("failed")).To(Equal([]string{"login"}), d.Out)
			Expect(d.Of("login").Seen).To(HavePrefix("the page shows 403"))
			Expect(d.Of("login").Fix).To(ContainSubstring("present must send it as the server expects it"))
		})

	It("has nothing to warn of at the second of several MCP servers", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey).URL + "/mcp"
		world := NewGateway(upstream, func(c *service.Config) {
			c.Gateway.Upstreams = append(c.Gateway.Upstreams, serverAt("/files", upstream))
		})
		d := Diagnose(ctx, world.Issuer+"/files", "--origin", world.Issuer)
		Expect(d.With("failed")).To(BeEmpty(), d.Out)
	})

	DescribeTable("names the verifier when the upstream cannot verify tokens:",
		Label("U14", "B9"), func(ctx SpecContext, upstream func() *UpstreamServer) {
			d := examine(ctx, NewGateway(upstream().URL+"/mcp"))
			Expect(d.With("failed")).To(Equal([]string{"login"}), d.Out)
			Expect(d.Of("login").Seen).To(HavePrefix("the page shows 503"))
			Expect(d.Of("login").Fix).To(And(ContainSubstring("the MCP server behind it"),
				ContainSubstring("refuse tokens that it does not know")))
		},
		Entry("it accepts any token", func() *UpstreamServer { return NewUpstream() }),
		Entry("it is down", func() *UpstreamServer {
			upstream := NewUpstream(apiKey)
			upstream.Close()
			return upstream
		}),
	)
})

var _ = Describe("Tracing connections through a gateway", Label("gateway", "trace"), func() {
	const connects = "authorize client_metadata page token_judged code_issued exchange "
	var upstream *UpstreamServer
	BeforeEach(func() { upstream = NewUpstream(apiKey) })

	tells := func(ctx context.Context, world *World, path, state string, says ...string) {
		GinkgoHelper()
		matchers := []types.GomegaMatcher{HaveField("Path", path), HaveField("State", state)}
		for _, words := range says {
			matchers = append(matchers, HaveField("Says", ContainSubstring(words)))
		}
		Eventually(world.Stories).WithContext(ctx).WithTimeout(patience).Should(ContainElement(And(matchers...)))
	}

	DescribeTable("shows the step, the reason and a remedy when the upstream",
		func(ctx SpecContext, answer http.HandlerFunc, path, state, reason, hint string) {
			world := NewGateway(upstream.URL+"/mcp", ofItself())
			access := world.NewClient().Connect(ctx).Access
			upstream.Answer(answer)
			world.Call(ctx, access)
			tells(ctx, world, connects+path, state, reason, hint)
		},
		Entry("is down", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, "call:failed", "stopped", "behind this gateway cannot be reached", "behind the gateway runs", Label("U9")),
		Entry("redirects", redirected, "call:failed", "stopped", "redirects, which is not followed",
			"exactly the address of the upstream setting", Label("U9")),
		Entry("is slow", hanging, "call:failed", "stopped", "did not answer in time", "upstream-timeout", Label("U9")),
		Entry("responds with 401 to a valid key", forgetful, "call:failed", "stopped", "answered 401, although "+
			"the person's token is valid: the key was sent as bearer token in the header Authorization",
			"accepts the same tokens as the verifier", Label("U17")),
	)

	It("names the key when both the upstream and the verifier refuse it", Label("U8"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		access := world.NewClient().Connect(ctx).Access
		upstream.Revoke()
		world.Call(ctx, access)
		tells(ctx, world, connects+"ended call:refused", "ended", "does not know the person's token any more",
			"connect again with a valid token")
	})

	It("names a session that the upstream has forgotten", Label("U16"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL+"/mcp", ofItself())
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		upstream.Answer(forgetful)
		talk.Post(ctx, "tools/list", params{})
		tells(ctx, world, connects+"call call:refused", "connected", "connected")
		Expect(world.service.Authz.Trace(ctx)).To(ConsistOf(HaveField("Steps",
			ContainElement(HaveField("Reason", ContainSubstring("does not know the session any more"))))))
	})

	It("shows that a working connection fails, that the upstream is paused, and that it works again",
		Label("long", "U9", "U10"), func(ctx SpecContext) {
			world := NewGateway(upstream.URL+"/mcp", ofItself())
			access := world.NewClient().Connect(ctx).Access
			world.Call(ctx, access)
			upstream.Answer(failing(502, "text/plain", "bad gateway"))
			for range 5 {
				world.Call(ctx, access)
			}
			tells(ctx, world, connects+"call call:failed", "connected", "connected, but",
				"behind this gateway has failed", "behind the gateway runs")
			world.Call(ctx, access)
			tells(ctx, world, connects+"call call:failed call:failed", "connected", "retry in a few seconds",
				"five times in a row")
			upstream.Answer(nil)
			Eventually(func() int {
				return world.Call(ctx, access).StatusCode
			}).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second / 2).Should(Equal(http.StatusOK))
			tells(ctx, world, connects+"call call:failed call:failed call", "connected", "has used its token")
		}, SpecTimeout(time.Minute))

	It("names an older revision of the upstream, which is not a refusal for a client that goes on with initialize",
		func(ctx SpecContext) {
			world := NewGateway(upstream.URL+"/mcp", ofItself())
			access := world.NewClient().Connect(ctx).Access
			talk := world.Talk(stateless, access)
			upstream.Answer(failing(http.StatusBadRequest, "text/plain", "no valid session ID"))
			talk.Post(ctx, "server/discover", params{})
			tells(ctx, world, connects+"call:refused", "stopped", "speaks an older revision of MCP")
			upstream.Answer(nil)
			world.Converse(ctx, sessions, access)
			tells(ctx, world, connects+"call:refused call", "connected", "has used its token")
		})

	It("names a message that the gateway did not forward", Label("U11", "U12"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		talk := world.Talk(stateless, world.NewClient().Connect(ctx).Access)
		talk.Post(ctx, "tools/call", params{"name": "shout", "Name": "delete_all"})
		tells(ctx, world, connects+"call:refused", "stopped", "another spelling of name",
			"could read the message in another way")
		talk.Post(ctx, "tools/list", params{}, with("Mcp-Session-Id", "of-another-client"))
		tells(ctx, world, connects+"call:refused call:refused", "stopped", "connection does not have the session",
			"session of another person or client")
	})

	It("explains why an upstream that accepts any token is not used as a verifier",
		Label("U14", "B9"), func(ctx SpecContext) {
			world := NewGateway(NewUpstream().URL + "/mcp")
			world.NewClient().Consent(ctx).Approve(ctx, "anything")
			tells(ctx, world, "authorize client_metadata page token_judged:failed", "stopped",
				"it accepts any token, even a random one", "choose another verifier")
		})
})
