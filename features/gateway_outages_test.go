package features_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
		Entry("a web page", failing(200, "text/html", "<h1>Sign in</h1>"), 502, "answered with a web page"),
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
		}).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second / 2).Should(Equal(http.StatusOK))
	}, SpecTimeout(time.Minute))
})

var _ = Describe("Noticing an outage of an upstream", Label("gateway", "U31", "U33"), func() {
	It("checks the upstream at once after a failed call", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		service, _ := operateChecked(ctx, upstream.URL+"/mcp")
		talk := service.Converse(ctx, stateless, service.NewClient().Connect(ctx).Access)
		upstream.Close()
		Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusBadGateway))
		Eventually(func() string {
			return service.AskAdmin(ctx, "/readyz").Text
		}).WithContext(ctx).WithTimeout(patience).Should(ContainSubstring(`"state":"down"`))
	})
})

var _ = Describe("An upstream behind a balancer with cookies", Label("gateway", "U12"), func() {
	It("gets the cookies of each session back, and clients never get them", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		sessionsSeen := 0
		balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := r.Cookie("lb")
			if r.Header.Get("X-Request-Id") != "" && r.Header.Get("Mcp-Session-Id") != "" {
				if err != nil {
					http.Error(w, "another server", http.StatusNotFound)
					return
				}
				sessionsSeen++
			}
			http.SetCookie(w, &http.Cookie{
				Name:     "lb",
				Value:    "one",
				Path:     "/",
				HttpOnly: true,
				Secure:   true,
			})
			upstream.Config.Handler.ServeHTTP(w, r)
		}))
		DeferCleanup(balancer.Close)
		DeferCleanup(balancer.CloseClientConnections)
		world := NewGateway(balancer.URL + "/mcp")
		world.Token = apiKey
		tape := NewTape()
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3))
		Expect(sessionsSeen).To(BeNumerically(">=", 2))
		Expect(tape.String()).NotTo(ContainSubstring("lb=one"))
	})
})

var _ = Describe("A gateway to a server that expects keys elsewhere", Label("gateway", "B8", "U18"), func() {
	It("states how the key was sent, and names present after refusals without a success", func(ctx SpecContext) {
		upstream := NewUpstreamReading(func(r *http.Request) string { return r.Header.Get("X-Api-Key") }, apiKey)
		service, report := operateChecked(ctx, upstream.URL+"/mcp")
		Expect(report.State.String()).
			To(HaveSuffix("refuses unknown keys, sent as bearer token in the header Authorization"))
		const sent = "the MCP server refused it, sent as bearer token in the header Authorization; it has refused " +
			"every key since the start: " +
			`if it reads keys from elsewhere, set present, for example to "X-Api-Key: {token}"`
		for _, key := range []string{"0", "0", "1", "2"} { // people try again with the right key
			Expect(service.NewClient().Consent(ctx).Approve(ctx, apiKey+key).StatusCode).To(Equal(http.StatusForbidden))
		}
		Eventually(func() (reasons []string) {
			for _, traced := range service.Traces(ctx) {
				reasons = append(reasons, traced.Last().Reason)
			}
			return reasons
		}).WithContext(ctx).WithTimeout(patience).Should(ConsistOf(
			"the site does not know this token: "+sent, "the site did not know this token a moment ago",
			"the site does not know this token: "+sent, "the site does not know this token: "+sent))
		Expect(linesWith(service.Log.String(), `"msg":"the MCP server has refused every key since the start"`)).
			To(ConsistOf(And(ContainSubstring("set present"), Not(ContainSubstring(apiKey)))))
	})

	It("says that no key has proven present, until one has", Label("U31"), func(ctx SpecContext) {
		upstream := NewUpstreamReading(headerAfter("X-Api-Key", ""), apiKey)
		service, report := operateChecked(ctx, upstream.URL+"/mcp", presenting("X-Api-Key: {token}"))
		Expect(report.State.String()).To(HaveSuffix(
			"refuses unknown keys, sent in the header X-Api-Key; no key has shown yet that it reads keys there"))
		Expect(service.Call(ctx, service.NewClient().Connect(ctx).Access).StatusCode).To(Equal(http.StatusOK))
		Expect(service.service.CheckUpstreams(ctx)).
			To(ConsistOf(HaveField("State.Cause", HaveSuffix("sent in the header X-Api-Key"))))
	})

	It("names no setting after a success", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		service, _ := operateChecked(ctx, upstream.URL+"/mcp")
		service.NewClient().Connect(ctx)
		for i := range 4 {
			service.NewClient().Consent(ctx).Approve(ctx, fmt.Sprint("wrong-key-", i))
		}
		Expect(service.Log.String() + service.AskAdmin(ctx, "/connections.json").Text).
			NotTo(ContainSubstring("set present, for"))
	})
})

var _ = Describe("A gateway to a server whose responses are not as asked", Label("gateway"), func() {
	const list = `{"jsonrpc":"2.0","id":7,"result":{"tools":[` +
		`{"name":"shout","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}}]}}`
	withRules := func(c *service.Config) { c.Gateway.Policy.Tools = []string{"allow shout"} }
	withoutRules := func(*service.Config) {}

	DescribeTable("passes on a response",
		func(ctx SpecContext, adjust func(*service.Config), answer http.HandlerFunc, tools int) {
			upstream := NewUpstream(apiKey)
			world := NewGateway(upstream.URL+"/mcp", adjust)
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			upstream.Answer(answer)
			got := talk.Post(ctx, "tools/list", params{}, func(r *http.Request) {
				r.Header.Set("Accept-Encoding", "identity")
			})
			Expect(got).To(And(HaveField("StatusCode", 200), HaveField("Header", Not(HaveKey("Content-Encoding")))))
			Expect(strings.Count(strings.TrimPrefix(got.Text, "\ufeff"), `"name":`)).To(Equal(tools), got.Text)
		},
		Entry("with rules, in gzip", Label("U27"), withRules, compressed("application/json", list), 1),
		Entry("with rules, as events with a BOM", Label("U27"), withRules,
			failing(200, "text/event-stream", "\ufeffdata: \ufeff"+list+"\n\n"), 1),
		Entry("without rules, in gzip", Label("U15"), withoutRules, compressed("application/json", list), 2),
	)

	// cut sends all of the body, but announces more.
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(list)+1))
		_, _ = w.Write([]byte(list))
	}

	It("warns of a response that was cut off, and does not count it as a success",
		Label("U9", "V1"), func(ctx SpecContext) {
			upstream := NewUpstream(apiKey)
			file, audited := auditing()
			world := NewGateway(upstream.URL+"/mcp", audited)
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			upstream.Answer(cut)
			got, err := noRedirects.Do(talk.message(ctx, "tools/call",
				params{"name": "shout", "arguments": params{"text": "x"}}))
			if err == nil {
				_, err = io.ReadAll(got.Body)
				_ = got.Body.Close()
			}
			Expect(err).To(HaveOccurred(), "the client has to know that the response is incomplete")
			Expect(toolCalls(file, 1)).To(ConsistOf(And(HaveField("Outcome", "error"), HaveField("Rule", "U9"))))
			Expect(linesWith(world.Log.String(), "the upstream did not answer")).
				To(ConsistOf(ContainSubstring("it cut off its response")))
		})

	It("answers with an error in place of a response that was cut off before a rule could read it",
		Label("U9", "U27"), func(ctx SpecContext) {
			upstream := NewUpstream(apiKey)
			world := NewGateway(upstream.URL+"/mcp", withRules)
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			upstream.Answer(cut)
			Expect(talk.Post(ctx, "tools/list", params{})).To(haveFailed(502, "cut off its response"))
		})

	It("tells the client when the server wants the next request", Label("U9"), func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		world := NewGateway(upstream.URL + "/mcp")
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for sent, passed := range map[string]string{"120": "120", "soon": "5"} {
			upstream.Answer(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", sent)
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			Expect(talk.Post(ctx, "tools/list", params{}).Header.Get("Retry-After")).To(Equal(passed))
		}
	})

	It("keeps a response from shared caches", Label("U15"), func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		world := NewGateway(upstream.URL + "/mcp")
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "public, max-age=60")
			w.Header().Set("CDN-Cache-Control", "public, max-age=60")
			failing(200, "application/json", list)(w, r)
		})
		got := talk.Post(ctx, "tools/list", params{})
		Expect(got.Header["Cache-Control"]).To(Equal([]string{"no-store, no-transform"}))
		Expect(got.Header).NotTo(HaveKey("Cdn-Cache-Control"))
	})
})

// compressed answers in gzip, which nobody has asked for.
func compressed(mediaType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Encoding", "gzip")
		zipped := gzip.NewWriter(w)
		_, _ = zipped.Write([]byte(body))
		_ = zipped.Close()
	}
}
