package mcp

import (
	"net/http"
	"strings"
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
		s.long, s.single = false, true
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
		Entry("nor what one of several requests has brought", func(s *stream) { s.single = false }, true),
		Entry("nor what is said on a long stream", func(s *stream) { s.long = true }, true),
		Entry("nor more than the server keeps back", func(s *stream) { s.unsent = buffered }, true),
	)

	It("does not wait for an end that does not come", func() {
		s, to := openStream(false)
		s.long, s.single, s.registry.linger = false, true, time.Millisecond
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
		s.long, s.single = false, true
		s.who.served.Store(true)
		Expect(s.FlushError()).To(Succeed())
		s.finish()
		s.send() // by a timer that was late
		Expect(to.Flushed).To(BeFalse())
	})

	DescribeTable("of requests over HTTP:", func(ctx SpecContext, body string, old, early bool) {
		s, count := openSite(), new(atomic.Int32)
		s.mcp.streams.linger = time.Hour
		headers := modernHeaders(alice, "tools/call", "read")
		if old {
			opened := s.send(ctx, http.MethodPost, "/mcp", strings.Replace(initialize, "2025-11-25", "2025-03-26", 1), as(alice)...)
			headers = append(as(alice), "Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"))
		}
		handler := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(flushes{w, count}, r) })
		answered := s.send(ctx, http.MethodPost, "/mcp", body, headers...)
		Expect(answered.StatusCode).To(Equal(http.StatusOK))
		Expect(answered.body).To(ContainSubstring("ran read"))
		Expect(count.Load() > 0).To(Equal(early))
	},
		Entry("a call without a session is sent at its end", modern("tools/call", `"name":"read","arguments":{}`), false, false),
		Entry("a call in a session too", Label("2025-03-26"), call(2, "read"), true, false),
		Entry("but not calls that come together", Label("2025-03-26"), "["+call(2, "read")+","+call(3, "read")+"]", true, true),
	)
})
