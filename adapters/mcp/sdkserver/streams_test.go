package sdkserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/oauth"
)

// sessionOf returns the SDK's id of the only session.
func sessionOf(s *site) (id string) {
	for session := range s.sdk.Sessions() {
		id = session.ID()
	}
	return id
}

// long opens each kind of stream.
var long = map[string]func(SpecContext, *site) follow{
	"HTTP+SSE": func(ctx SpecContext, s *site) follow {
		f := s.follow(ctx, http.MethodGet, "/mcp", "", append(as(alice), "Accept", "text/event-stream")...)
		Expect(f.data()).To(HavePrefix("/mcp/message?sessionid="))
		return f
	},
	"the stream of a session": func(ctx SpecContext, s *site) follow {
		session := s.session(ctx, alice)
		f := s.follow(ctx, http.MethodGet, "/mcp", "", append(in(session, alice), "Accept", "text/event-stream")...)
		Eventually(f.lines).Should(Receive(Equal(": ok")))
		return f
	},
	"a subscription": func(ctx SpecContext, s *site) follow {
		body := modern("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
		f := s.follow(ctx, http.MethodPost, "/mcp", body, modernHeaders(alice, "subscriptions/listen", "x")...)
		Expect(f.data()).To(ContainSubstring("notifications/subscriptions/acknowledged"))
		return f
	},
}

var _ = Describe("Ending streams", Label("G16"), func() {
	for kind, open := range long {
		Context("of "+kind, func() {
			It("does not happen during an outage", func(ctx SpecContext) {
				s := openSite()
				s.mcp.responses.KeepAlive = 5 * time.Millisecond
				stream := open(ctx, s)
				s.tokens.set(func(t *tokens) { t.outage, t.asked = errors.New("down"), nil })
				Eventually(func() bool { return drained(stream) || s.tokens.askedAtLeast(3) }).Should(BeTrue())
				Eventually(stream.lines).Should(Receive(Equal(": keep-alive")))
			})

			It("happens when the process shuts down, which opens no new ones", func(ctx SpecContext) {
				s := openSite()
				stream := open(ctx, s)
				s.mcp.Drain()
				Eventually(stream.lines).Should(BeClosed())
				Expect(s.send(ctx, http.MethodPost, "/mcp", initialize, as(alice)...).StatusCode).
					To(Equal(http.StatusServiceUnavailable))
				late := s.follow(ctx, http.MethodPost, "/mcp",
					modern("subscriptions/listen", `"notifications":{"toolsListChanged":true}`),
					modernHeaders(alice, "subscriptions/listen", "x")...)
				Eventually(late.lines).Should(BeClosed())
			})
		})
	}

	Context("a session that another grant of its owner uses, as after a step-up", Label("G14", "G16"), func() {
		use := func(ctx SpecContext, s *site, session, token string, grant string, change func(*oauth.Caller)) int {
			s.tokens.set(func(t *tokens) {
				caller := t.callers[alice]
				caller.Grant = grant
				change(&caller)
				t.callers[token] = caller
			})
			return s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, token)...).StatusCode
		}
		same := func(*oauth.Caller) {}

		It("ends with the last of its grants", func(ctx SpecContext) {
			s := openSite()
			session := s.session(ctx, alice)
			Expect(use(ctx, s, session, "ppa_later", "A2", same)).To(Equal(http.StatusOK))
			s.mcp.CloseGrant("A")
			s.mcp.CloseGrant("A") // it may be repeated
			Expect(use(ctx, s, session, "ppa_later", "A2", same)).To(Equal(http.StatusOK))
			_, sessions := s.mcp.Open()
			Expect(sessions).To(Equal(1))
			s.mcp.responses.UseSession(sessionOf(s), "A") // a request that was admitted before the end
			s.mcp.CloseGrant("A2")
			Expect(use(ctx, s, session, "ppa_last", "A3", same)).To(Equal(http.StatusNotFound))
		})
	})
})

// drained discards the received lines and reports whether the stream has ended.
func drained(f follow) bool {
	for {
		select {
		case _, open := <-f.lines:
			if !open {
				return true
			}
		default:
			return false
		}
	}
}

func (t *tokens) askedAtLeast(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.asked) >= n
}

var _ = Describe("Responses that take longer than the deadlines of the server", Label("G16"), func() {
	const deadline = 50 * time.Millisecond
	var s *site
	var release chan struct{}
	BeforeEach(func() {
		s = openSiteOn(func(server *http.Server) { server.ReadTimeout, server.WriteTimeout = deadline, deadline })
		release = make(chan struct{})
		sdk.AddTool(s.sdk, &sdk.Tool{Name: "wait"},
			func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
				s.holds <- struct{}{}
				select {
				case <-release:
					return text("waited"), nil, nil
				case <-ctx.Done():
					return nil, nil, ctx.Err()
				}
			})
	})

	It("do not end with a slow call", func(ctx SpecContext) {
		answers := make(chan answer, 1)
		go func() {
			defer GinkgoRecover()
			answers <- s.send(ctx, http.MethodPost, "/mcp", modern("tools/call", `"name":"wait"`),
				modernHeaders(alice, "tools/call", "wait")...)
		}()
		Eventually(s.holds).WithTimeout(5 * time.Second).Should(Receive())
		Consistently(answers, 4*deadline).ShouldNot(Receive())
		close(release)
		Eventually(answers).WithTimeout(5 * time.Second).Should(Receive(WithTransform(func(a answer) string {
			return a.body
		}, ContainSubstring("waited"))))
	}, SpecTimeout(10*time.Second))

	DescribeTable("keep an idle stream open", func(ctx SpecContext, headers func(ctx context.Context) []string) {
		stream := s.follow(ctx, http.MethodGet, "/mcp", "", append(headers(ctx), "Accept", message.EventStream)...)
		Expect(stream.StatusCode).To(Equal(http.StatusOK))
		Consistently(func() bool {
			select {
			case _, open := <-stream.lines:
				return open
			default:
				return true
			}
		}, 4*deadline).Should(BeTrue())
		streams, _ := s.mcp.Open()
		Expect(streams).To(Equal(1))
	},
		Entry("of HTTP+SSE", func(context.Context) []string { return as(alice) }, SpecTimeout(10*time.Second)),
		Entry("of a session", func(ctx context.Context) []string {
			return in(s.session(ctx, alice), alice)
		}, SpecTimeout(10*time.Second)),
	)
})

var _ = Describe("HTTP+SSE", Label("2024-11-05"), func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	open := func(ctx context.Context, token string) (stream follow, endpoint string) {
		GinkgoHelper()
		stream = s.follow(ctx, http.MethodGet, "/mcp", "", append(as(token), "Accept", "text/event-stream")...)
		Eventually(stream.lines).Should(Receive(Equal("event: endpoint")))
		return stream, stream.data()
	}

	It("removes a session whose client goes before initialize", func(ctx SpecContext) {
		initializing, proceed, initialized := make(chan struct{}), make(chan struct{}), make(chan struct{})
		s.mcp.mcp.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
				if method != "initialize" {
					return next(ctx, method, request)
				}
				defer close(initialized)
				close(initializing)
				<-proceed
				return next(ctx, method, request)
			}
		})
		streamCtx, hangUp := context.WithCancel(ctx)
		_, endpoint := open(streamCtx, alice)
		s.send(ctx, http.MethodPost, endpoint, initialize, as(alice)...)
		Eventually(initializing).Should(BeClosed())
		hangUp()
		Eventually(func() int { streams, _ := s.mcp.Open(); return streams }).Should(BeZero())
		close(proceed)
		Eventually(initialized).Should(BeClosed())
		Eventually(s.mcp.Idle).Should(BeTrue())
	})

	It("cancels running calls and removes the session when the client goes", func(ctx SpecContext) {
		streamCtx, hangUp := context.WithCancel(ctx)
		_, endpoint := open(streamCtx, alice)
		s.send(ctx, http.MethodPost, endpoint, initialize, as(alice)...)
		s.send(ctx, http.MethodPost, endpoint, call(2, "hold"), as(alice)...)
		Eventually(s.holds).Should(Receive())
		hangUp()
		Eventually(s.ended).Should(Receive())
		Eventually(s.mcp.Idle).Should(BeTrue())
		Eventually(func() int {
			open := 0
			s.mcp.legacy.Range(func(any, any) bool { open++; return true })
			return open
		}).Should(BeZero())
		Expect(s.send(ctx, http.MethodPost, endpoint, initialize, as(alice)...).StatusCode).
			To(Equal(http.StatusNotFound))
	})
})

var _ = Describe("An idle session", Label("G20"), func() {
	It("is one without a call under way, also after the connection of the call broke, "+
		"and without a client that listens",
		func(ctx SpecContext) {
			s := openSite(func(o *Options) { o.SessionTimeout = 100 * time.Millisecond })
			busy := s.session(ctx, alice)
			broken, hangUp := context.WithCancel(ctx)
			go func() {
				_, _ = s.Client().Do(s.request(broken, http.MethodPost, "/mcp", call(2, "hold"), in(busy, alice)...))
			}()
			Eventually(s.holds).Should(Receive())
			hangUp()
			listening := s.session(ctx, alice)
			stream := s.follow(ctx, http.MethodGet, "/mcp", "",
				append(in(listening, alice), "Accept", "text/event-stream")...)
			Eventually(stream.lines).Should(Receive(Equal(": ok")))
			legacy := long["HTTP+SSE"](ctx, s)
			s.session(ctx, alice)
			sessions := func() int { _, sessions := s.mcp.Open(); return sessions }
			Eventually(sessions).Should(Equal(3))
			for _, session := range []string{busy, listening} {
				Expect(s.send(ctx, http.MethodPost, "/mcp", call(3, "read"), in(session, alice)...).StatusCode).
					To(Equal(http.StatusOK))
			}
			Expect(stream.Body.Close()).To(Succeed())
			Expect(legacy.Body.Close()).To(Succeed())
			Eventually(sessions).Should(Equal(1), "the session with the call")
		})
})

var _ = Describe("Resuming a stream", func() {
	// notify sends a message that belongs to no call.
	notify := func(s *site, text string) {
		GinkgoHelper()
		for session := range s.sdk.Sessions() {
			Expect(session.NotifyProgress(context.Background(),
				&sdk.ProgressNotificationParams{Message: text})).To(Succeed())
		}
	}
	listen := func(ctx context.Context, s *site, session string) follow {
		GinkgoHelper()
		stream := s.follow(ctx, http.MethodGet, "/mcp", "",
			append(in(session, alice), "Accept", "text/event-stream")...)
		Expect(stream.StatusCode).To(Equal(http.StatusOK))
		return stream
	}
	noStream := func(s *site) {
		GinkgoHelper()
		Eventually(func() int { streams, _ := s.mcp.Open(); return streams }).Should(BeZero())
	}

	It("repeats no message of a session to a client that names none, but sends what no client has got",
		func(ctx SpecContext) {
			s := openSite()
			session := s.session(ctx, alice)
			notify(s, "before")
			stream := listen(ctx, s, session)
			Expect(stream.data()).To(ContainSubstring("before"))
			notify(s, "during")
			Expect(stream.data()).To(ContainSubstring("during"))
			Expect(stream.Body.Close()).To(Succeed())
			noStream(s)
			notify(s, "between")
			Expect(listen(ctx, s, session).data()).To(ContainSubstring("between"))
		})

	It("does not hold up a session for a stream that its client does not read", func(ctx SpecContext) {
		s := openSite()
		s.mcp.responses.WriteLimit = 200 * time.Millisecond
		session := s.session(ctx, alice)
		unread, err := s.Client().
			Do(s.request(ctx, http.MethodGet, "/mcp", "", append(in(session, alice), "Accept", "text/event-stream")...))
		Expect(err).NotTo(HaveOccurred())
		sent := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(sent)
			for range 32 {
				notify(s, strings.Repeat("x", 1<<20))
			}
			notify(s, "the last one")
		}()
		Eventually(sent).WithTimeout(30 * time.Second).Should(BeClosed())
		Expect(s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).body).
			To(ContainSubstring("ran read"))
		Expect(unread.Body.Close()).To(Succeed())
		noStream(s)
		rest := s.request(ctx, http.MethodGet, "/mcp", "", append(in(session, alice), "Accept", "text/event-stream")...)
		resumed, err := s.Client().Do(rest)
		Expect(err).NotTo(HaveOccurred())
		Expect(resumed.StatusCode).To(Equal(http.StatusOK))
		received, part := "", make([]byte, 1<<20)
		for !strings.Contains(received, "the last one") {
			n, err := resumed.Body.Read(part)
			Expect(err).NotTo(HaveOccurred())
			received = received[max(0, len(received)-100):] + string(part[:n])
		}
		Expect(resumed.Body.Close()).To(Succeed())
	})
})
