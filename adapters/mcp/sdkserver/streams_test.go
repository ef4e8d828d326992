package sdkserver

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
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

			It("leaves nothing behind", func(ctx SpecContext) {
				s := openSite()
				stream := open(ctx, s)
				s.mcp.CloseGrant("A")
				Eventually(stream.lines).Should(BeClosed())
				Eventually(s.mcp.Idle).Should(BeTrue())
			})
		})
	}

	DescribeTable("makes writes fail",
		func(ctx SpecContext, end func(*site, *stream.Writer)) {
			s, recorder := openSite(), httptest.NewRecorder()
			out, _ := s.mcp.responses.NewWriter(recorder, httptest.NewRequest(http.MethodGet, "/mcp", nil), ctx)
			out.Identify(&stream.Identity{Token: alice, Sender: stream.Sender{Caller: oauth.Caller{Grant: "A"}}})
			out.Begin(message.ID{}, true)
			DeferCleanup(out.Finish)
			end(s, out)
			_, err := out.Write([]byte("data: secret"))
			Expect(err).To(MatchError(context.Canceled))
			Expect(out.FlushError()).To(MatchError(context.Canceled))
			Expect(recorder.Body.String()).To(BeEmpty())
		},
		Entry("when the grant ended", func(s *site, _ *stream.Writer) { s.mcp.CloseGrant("A") }),
		Entry("when the request ended", func(_ *site, out *stream.Writer) { out.Finish() }),
	)

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

	It("cancels a call without a session", Label("2026-07-28"), func(ctx SpecContext) {
		s := openSite()
		held := make(chan answer, 1)
		go func() {
			defer GinkgoRecover()
			held <- s.send(ctx, http.MethodPost, "/mcp", modern("tools/call", `"name":"hold"`),
				modernHeaders(alice, "tools/call", "hold")...)
		}()
		Eventually(s.holds).Should(Receive())
		s.mcp.CloseGrant("A")
		Eventually(s.ended).Should(Receive())
		Eventually(held).Should(Receive())
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

var _ = Describe("Keeping streams open", func() {
	It("checks the token often enough to notice a revocation elsewhere within a minute, with any store",
		Label("G16", "E9"), func() {
			Expect(openSite().mcp.responses.KeepAlive).
				To(And(BeNumerically(">", 0), BeNumerically("<=", 50*time.Second)))
		})
})
