package features_test

import (
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// haveFailed matches the gateway's own error response to the request.
func haveFailed(status int, text string) types.GomegaMatcher {
	return And(HaveField("StatusCode", status),
		HaveField("Header", HaveKeyWithValue("Content-Type", []string{"application/json"})),
		HaveField("Text",
			MatchJSON(`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"The MCP server behind this gateway `+
				text+`"}}`)))
}

func failing(status int, mediaType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var _ = Describe("A gateway to a failing server", Label("gateway", "U9"), func() {
	var upstream *UpstreamServer
	BeforeEach(func() { upstream = NewUpstream(apiKey) })

	It("says once in the log that the server is down, and again after it has worked", Label("U10"),
		func(ctx SpecContext) {
			world := NewGateway(upstream.URL + "/mcp")
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			fail := func(status, calls int) []string {
				GinkgoHelper()
				upstream.Answer(failing(status, "text/plain", "no"))
				for range calls {
					Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(BeNumerically(">=", 500))
				}
				warnings := linesWith(world.Log.String(), `"level":"WARN"`)
				return linesWith(strings.Join(warnings, ""), `"rule":"U`)
			}
			Expect(fail(500, 3)).To(HaveLen(1))
			upstream.Answer(nil)
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3))
			Expect(fail(500, 2)).To(HaveLen(2))
			Expect(fail(503, 7)).To(HaveLen(2), "while the upstream gets no requests")
		})

	DescribeTable("responds with an error of its own and hides the upstream's response:",
		func(ctx SpecContext, answer http.HandlerFunc, status int, text string) {
			world := NewGateway(upstream.URL+"/mcp", func(c *service.Config) { c.Gateway.Patience = time.Second })
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			upstream.Answer(answer)
			Expect(talk.Post(ctx, "tools/list", params{})).To(haveFailed(status, text))
			Expect(world.Log.String()).NotTo(ContainSubstring(apiKey))
			upstream.Answer(nil)
			Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3), "the grant is active")
		},
		Entry("an error page", failing(500, "text/html", "<h1>at db.go:12</h1>"), 502, "has failed"),
		Entry("a 503", failing(503, "text/plain", "restarting"), 503, "has failed"),
		Entry("a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
		}, 502, "redirects, which is not followed"),
		Entry("a timeout", hanging, 504, "did not answer in time"),
		Entry("a malformed header", func(w http.ResponseWriter, r *http.Request) {
			line, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(line, "HTTP/1.1 200 OK\r\nyou sent "+r.Header.Get("Authorization")+"\r\n\r\n")
			_ = line.Close()
		}, 502, "cannot be reached"),
		Entry("an endless error page", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 502, "has failed"),
		Entry("a closed connection", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, 502, "cannot be reached"),
		Entry("another protocol", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}, 502, "switches protocols"),
	)

	It("forwards a JSON-RPC error", func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		access := world.NewClient().Connect(ctx).Access
		upstream.Answer(
			failing(500, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"theirs"}}`))
		Expect(world.Call(ctx, access)).
			To(And(HaveField("StatusCode", 500), HaveField("Text", ContainSubstring("theirs"))))
	})

	It("does not end the grant when the gateway's own secret is wrong", Label("U7"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL+"/mcp", func(c *service.Config) {
			c.Gateway.Credential, c.Gateway.Secret, c.Gateway.SigningSecret = bootstrap.CredentialStatic, "wrong",
				strings.Repeat("s", 32)
			c.Verification.Verifier, c.Verification.TokenFile = service.VerifierFile, tokenFileOf(ctx, apiKey)
		})
		tokens := world.NewClient().Connect(ctx)
		for range 2 {
			answer := world.Call(ctx, tokens.Access)
			Expect(answer.StatusCode).To(Equal(http.StatusBadGateway))
			Expect(answer.Header).NotTo(HaveKey("Www-Authenticate"))
		}
		Expect(world.Log.String()).To(ContainSubstring("it answered 401: check credential, upstream-secret and " +
			"present; the secret was sent as bearer token in the header Authorization"))
	})

	It("pauses requests to an upstream that is down", Label("long", "U10"), func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		upstream.Answer(failing(502, "text/plain", "bad gateway"))
		for range 5 {
			Expect(talk.Post(ctx, "tools/list", params{})).To(haveFailed(502, "has failed"))
		}
		asked := len(upstream.Asked())
		answer := talk.Post(ctx, "tools/list", params{})
		Expect(answer).To(haveFailed(503, "is down; retry in a few seconds"))
		Expect(answer.Header.Get("Retry-After")).NotTo(BeEmpty())
		Expect(upstream.Asked()).To(HaveLen(asked))
		upstream.Answer(nil)
		Eventually(func() int {
			return talk.Post(ctx, "tools/list", params{}).StatusCode
		}).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second / 2).
			Should(Equal(http.StatusOK))
	}, SpecTimeout(time.Minute))
})
