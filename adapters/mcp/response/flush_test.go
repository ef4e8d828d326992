package response

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

var _ = Describe("Flushing a response", Label("G16"), func() {
	const event = "event: message\ndata: {}\n\n"

	DescribeTable("at once or with the end of the response:", func(change func(s *Writer), atOnce bool) {
		s, to := openStream(false)
		s.long, s.id = false, message.ID{Text: "1"}
		s.ctx.identity.served.Store(true)
		change(s)
		s.Header().Set("Content-Type", message.EventStream)
		_, err := s.Write([]byte(event))
		Expect(err).NotTo(HaveOccurred())
		Expect(s.FlushError()).To(Succeed())
		s.mu.Lock()
		defer s.mu.Unlock()
		Expect(to.Flushed).To(Equal(atOnce))
	},
		Entry("the result of a call waits for the end", func(*Writer) {}, false),
		Entry("a message before the result does not", func(s *Writer) { s.ctx.identity.served.Store(false) }, true),
		Entry("the result of a request in a batch does not", func(s *Writer) { s.id = message.ID{} }, true),
		Entry("an event of a stream does not", func(s *Writer) { s.long = true }, true),
		Entry("more than the buffer of the server does not", func(s *Writer) { s.unsent = buffered }, true),
	)

	It("waits for the flush delay at most", func() {
		s, to := openStream(false)
		s.long, s.id, s.registry.FlushDelay = false, message.ID{Text: "1"}, time.Millisecond
		s.ctx.identity.served.Store(true)
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

	It("sends nothing after the end of the response", func() {
		s, to := openStream(false)
		s.long, s.id = false, message.ID{Text: "1"}
		s.ctx.identity.served.Store(true)
		Expect(s.FlushError()).To(Succeed())
		s.Finish()
		s.delayedFlush() // by a timer that fires late
		Expect(to.Flushed).To(BeFalse())
	})
})
