package sdkserver

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Too many sessions", Label("G20"), func() {
	limits := func(all, perPerson int) func(*Options) {
		return func(o *Options) { o.Limits = oauth.Limits{MaxSessions: all, MaxSessionsPerPerson: perPerson} }
	}
	use := func(ctx SpecContext, s *site, session, token string) int {
		return s.send(ctx, http.MethodPost, "/mcp", call(3, "read"), in(session, token)...).StatusCode
	}

	It("end streams of HTTP+SSE too", func(ctx SpecContext) {
		s := openSite(limits(10, 1))
		stream := long["HTTP+SSE"](ctx, s)
		Expect(use(ctx, s, s.session(ctx, alice), alice)).To(Equal(http.StatusOK))
		Eventually(stream.lines).Should(BeClosed())
	})

	It("do not include a session that has ended", func(ctx SpecContext) {
		s := openSite(limits(10, 2))
		kept, ended := s.session(ctx, alice), s.session(ctx, alice)
		s.send(ctx, http.MethodDelete, "/mcp", "", in(ended, alice)...)
		Eventually(func() int { _, sessions := s.mcp.Open(); return sessions }).Should(Equal(1))
		s.session(ctx, alice)
		Expect(use(ctx, s, kept, alice)).To(Equal(http.StatusOK))
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
