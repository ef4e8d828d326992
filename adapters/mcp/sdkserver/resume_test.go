package sdkserver

import (
	"context"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Resuming a stream", func() {
	It("sends the rest of a response to a client that lost its connection", func(ctx SpecContext) {
		s := openSite()
		session := s.session(ctx, alice)
		called := s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...)
		_, begin, _ := strings.Cut(called.body, "id: ")
		begin, _, _ = strings.Cut(begin, "\n")
		on := func(session, token, id string) answer {
			return s.send(ctx, http.MethodGet, "/mcp", "",
				append(in(session, token), "Accept", "text/event-stream", "Last-Event-ID", id)...)
		}
		Expect(on(session, alice, begin).body).To(And(ContainSubstring("ran read"), ContainSubstring(`"id":2,`)))
		Expect(on(s.session(ctx, alice), alice, begin).StatusCode).
			To(Equal(http.StatusBadRequest), "in another session")
		Expect(on(session, alice, strings.TrimSuffix(begin, "_0")+"_7").StatusCode).To(Equal(http.StatusBadRequest))
	})

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
