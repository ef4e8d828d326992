package features_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("Reading the answer of an upstream to a check", Label("gateway", "U31"), func() {
	const (
		result = `{"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"n",` +
			`"version":"1"}},"jsonrpc":"2.0","id":1}`
		failed = `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"invalid api key"}}`
	)
	answering := func(status int, mediaType, body string) func() string {
		return upstreamAnswering(failing(status, mediaType, body))
	}

	DescribeTable("finds", func(ctx SpecContext, address func() string, state, cause string) {
		_, report := operateChecked(ctx, address())
		Expect(string(report.State.State)).To(Equal(state))
		Expect(report.State.Cause).To(ContainSubstring(cause))
	},
		Entry("a refusal of unknown keys with 400", Label("U14"), answering(http.StatusBadRequest, "text/plain", "no"),
			"refuses", "it refuses the request with 400"),
		Entry("JSON of another API", answering(http.StatusOK, "application/json", `{"ok":true}`), "misconfigured",
			"it answered 200 to initialize"),
		Entry("an error in place of 401", answering(http.StatusOK, "application/json", failed), "refuses",
			"it refuses the request with 200"),
		Entry("a refusal of keys that are malformed", Label("U14"),
			upstreamAnswering(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(map[bool]int{true: http.StatusUnauthorized,
					false: http.StatusBadRequest}[r.Header.Get("Authorization") == ""])
			}), "refuses", "reachable, refuses unknown keys"),
		Entry("a long result",
			answering(http.StatusOK, "application/json",
				strings.Replace(result, `"name":"n"`, `"name":"`+strings.Repeat("n", 1<<18)+`"`, 1)),
			"misconfigured", "it accepts any token"),
	)

	DescribeTable("accepts a valid key where unknown ones get", Label("U14"), func(ctx SpecContext, status int) {
		upstream := NewUpstream(apiKey)
		upstream.Config.Handler = refusingWith(status, upstream.Config.Handler)
		service, report := operateChecked(ctx, upstream.URL+"/mcp")
		Expect(report.State.String()).To(ContainSubstring("let it answer 401 to a key that it does not know"))
		Expect(service.NewClient().ConnectAs(ctx, apiKey).Access).NotTo(BeEmpty())
	}, Entry(nil, 400), Entry(nil, 403), Entry(nil, 422))
})

var _ = Describe("Checking an upstream that may lock out the gateway", Label("gateway", "U31"), func() {
	lockedOut := func(status int, retryAfter string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			w.WriteHeader(status)
		}
	}
	checkAgain := func(ctx context.Context, service *Operated, state string) {
		GinkgoHelper()
		for range 3 {
			Expect(service.service.CheckUpstreams(ctx)).To(ConsistOf(HaveField("State.State", BeEquivalentTo(state))))
		}
	}

	DescribeTable("sends one request while it answers",
		func(ctx SpecContext, status int, retryAfter string, wait time.Duration) {
			upstream := NewUpstream()
			upstream.Answer(lockedOut(status, retryAfter))
			service, report := operateChecked(ctx, upstream.URL+"/mcp")
			Expect(report.State.RetryAfter).To(Equal(wait))
			Expect(report.State.String()).To(MatchRegexp(`^it answered \d+: read its log`))
			checkAgain(ctx, service, "down")
			Expect(strings.Count(upstream.Wire(), `"method":"initialize"`)).To(Equal(4))
			Expect(upstream.Wire()).NotTo(ContainSubstring("server/discover"))
		},
		Entry("429", http.StatusTooManyRequests, "", time.Duration(0)),
		Entry("429 with a time", http.StatusTooManyRequests, "120", 2*time.Minute),
		Entry("403 with a time", http.StatusForbidden, "30", 30*time.Second),
	)

	DescribeTable("asks a server that accepts any key with a key until it checks keys; without a key, the server",
		func(ctx SpecContext, keyless string) {
			upstream := NewUpstreamReading(func(r *http.Request) string {
				if bearerOf(r) == "" {
					return keyless
				}
				return "any"
			}, "any")
			service, report := operateChecked(ctx, upstream.URL+"/mcp")
			Expect(report.State.Cause).To(ContainSubstring("it accepts any token"))
			checkAgain(ctx, service, "misconfigured")
			upstream.Answer(failing(http.StatusInternalServerError, "text/plain", "no"))
			checkAgain(ctx, service, "down")
			upstream.Answer(nil)
			checkAgain(ctx, service, "misconfigured")
			upstream.mu.Lock()
			upstream.keys = []string{apiKey}
			upstream.mu.Unlock()
			checkAgain(ctx, service, "refuses")
		},
		Entry("answers", "any"),
		Entry("refuses", ""),
	)
})

// refusingWith answers a request without the valid key with the status.
func refusingWith(status int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearerOf(r) != apiKey {
			http.Error(w, "no", status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

var _ = Describe("A key that the upstream repeats", Label("gateway", "U9", "N13"), func() {
	const closing = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
	raw := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte(strings.ReplaceAll(answer, "KEY", bearerOf(r))))
				_ = conn.Close()
			}
		}
	}
	asItIs := func(*service.Config) {}
	withRules := func(c *service.Config) { c.Gateway.Policy.Tools = []string{"allow *"} }
	binding := func(c *service.Config) { c.Gateway.BindTools = true }

	DescribeTable("is in no log, trace or page:",
		func(ctx SpecContext, answer http.HandlerFunc, adjust func(*service.Config)) {
			upstream := NewUpstream(apiKey)
			service, _ := operateChecked(ctx, upstream.URL+"/mcp", adjust)
			client := service.NewClient()
			access := client.ConnectAs(ctx, apiKey).Access
			service.Clock.Advance(30 * time.Minute) // the access token is still valid
			var repeated atomic.Bool
			upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
				if bearerOf(r) == apiKey {
					repeated.Store(true)
				}
				answer(w, r)
			})
			service.Call(ctx, access)
			Expect(repeated.Load()).To(BeTrue())
			service.service.CheckUpstreams(ctx)
			for _, page := range []string{"/readyz", "/", "/connections.json", "/metrics"} {
				Expect(service.AskAdmin(ctx, page).Text).NotTo(ContainSubstring(apiKey), page)
			}
			Expect(service.Log.String()).NotTo(ContainSubstring(apiKey))
		},
		Entry("the text of a status", raw("HTTP/1.1 503 KEY is down\r\nContent-Length: 0\r\n\r\n"), asItIs),
		Entry("JSON that is invalid", raw(closing+"\r\n"+
			`{"jsonrpc":"2.0","id":1,"result":{"KEY":1,"KEY" oops KEY}}`), withRules),
		Entry("a content encoding", raw(closing+"Content-Encoding: KEY\r\n\r\n{}"), withRules),
		Entry("a redirect", raw("HTTP/1.1 307 Go\r\nLocation: https://KEY.example/\r\n"+
			"Content-Length: 0\r\n\r\n"), asItIs),
		Entry("an error of JSON-RPC", raw(closing+"\r\n"+
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"unknown key KEY"}}`), binding),
	)
})

var _ = Describe("A reused connection that dies before the response", Label("gateway", "U10"), func() {
	It("is not an outage, and only requests that can safely be repeated are sent again", func(ctx SpecContext) {
		upstream := NewUpstream(apiKey)
		var armed atomic.Bool
		var seen sync.Map
		var calls atomic.Int32
		dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, reused := seen.LoadOrStore(r.RemoteAddr, true); reused && armed.Load() {
				if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "tools/call") {
					calls.Add(1)
				}
				panic(http.ErrAbortHandler)
			}
			upstream.Config.Handler.ServeHTTP(w, r)
		}))
		DeferCleanup(dying.Close)
		service, _ := operateChecked(ctx, dying.URL+"/mcp")
		talk := service.Converse(ctx, stateless, service.NewClient().ConnectAs(ctx, apiKey).Access)
		for _, sent := range []struct {
			method string
			params params
			status int
		}{
			{"tools/list", params{}, http.StatusOK},
			{"tools/call", params{"name": "shout", "arguments": params{"text": "x"}}, http.StatusBadGateway},
		} {
			armed.Store(false)
			Expect(talk.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusOK))
			armed.Store(true)
			Expect(talk.Post(ctx, sent.method, sent.params).StatusCode).To(Equal(sent.status), sent.method)
		}
		Expect(calls.Load()).To(BeEquivalentTo(1))
		Expect(service.AskAdmin(ctx, "/readyz").Text).To(ContainSubstring(`"status":"ok"`))
	})
})

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
				Expect(Send(r)).To(And(HaveField("StatusCode", http.StatusNotFound),
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
