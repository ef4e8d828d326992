package mcp

import (
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// flushes counts how often an answer is sent before its end.
type flushes struct {
	http.ResponseWriter
	count *atomic.Int32
}

// FlushError is what http.ResponseController calls.
func (f flushes) FlushError() error {
	f.count.Add(1)
	return http.NewResponseController(f.ResponseWriter).Flush()
}

var _ = Describe("Sending an answer", Label("G16"), func() {
	const event = "event: message\ndata: {}\n\n"

	DescribeTable("at once or with its end:", func(change func(s *stream), atOnce bool) {
		s, to := openStream(false)
		s.long = false
		s.who.served.Store(true)
		change(s)
		s.Header().Set("Content-Type", eventStream)
		_, err := s.Write([]byte(event))
		Expect(err).NotTo(HaveOccurred())
		Expect(s.FlushError()).To(Succeed())
		s.mu.Lock()
		defer s.mu.Unlock()
		Expect(to.Flushed).To(Equal(atOnce))
	},
		Entry("what a call has brought waits for the end", func(*stream) {}, false),
		Entry("but not what it says before that", func(s *stream) { s.who.served.Store(false) }, true),
		Entry("nor what is said on a long stream", func(s *stream) { s.long = true }, true),
		Entry("nor more than the server keeps back", func(s *stream) { s.unsent = buffered }, true),
	)

	It("does not wait for an end that does not come", func() {
		s, to := openStream(false)
		s.long, s.registry.linger = false, time.Millisecond
		s.who.served.Store(true)
		_, err := s.Write([]byte(event))
		Expect(err).NotTo(HaveOccurred())
		Expect(s.FlushError()).To(Succeed())
		Eventually(func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return to.Flushed
		}).Should(BeTrue())
		Expect(s.unsent).To(BeZero())
	})

	It("sends nothing when the end has come before", func() {
		s, to := openStream(false)
		s.long = false
		s.who.served.Store(true)
		Expect(s.FlushError()).To(Succeed())
		s.finish()
		s.send() // by a timer that was late
		Expect(to.Flushed).To(BeFalse())
	})

	It("sends nothing of a call without a session before its end", func(ctx SpecContext) {
		s, count := openSite(), new(atomic.Int32)
		s.mcp.streams.linger = time.Hour
		handler := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(flushes{w, count}, r) })
		body := modern("tools/call", `"name":"read","arguments":{}`)
		answer := s.send(ctx, http.MethodPost, "/mcp", body, modernHeaders(alice, "tools/call", "read")...)
		Expect(answer.StatusCode).To(Equal(http.StatusOK))
		Expect(count.Load()).To(BeZero())
	})
})
