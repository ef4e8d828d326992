package response

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Sending an answer", Label("G16"), func() {
	const event = "event: message\ndata: {}\n\n"

	DescribeTable("at once or with its end:", func(change func(s *Writer), atOnce bool) {
		s, to := openStream(false)
		s.long, s.single = false, true
		s.ctx.who.served.Store(true)
		change(s)
		s.Header().Set("Content-Type", EventStream)
		_, err := s.Write([]byte(event))
		Expect(err).NotTo(HaveOccurred())
		Expect(s.FlushError()).To(Succeed())
		s.mu.Lock()
		defer s.mu.Unlock()
		Expect(to.Flushed).To(Equal(atOnce))
	},
		Entry("what a call has brought waits for the end", func(*Writer) {}, false),
		Entry("but not what it says before that", func(s *Writer) { s.ctx.who.served.Store(false) }, true),
		Entry("nor what one of several requests has brought", func(s *Writer) { s.single = false }, true),
		Entry("nor an event on a long stream", func(s *Writer) { s.long = true }, true),
		Entry("nor more than the server keeps back", func(s *Writer) { s.unsent = buffered }, true),
	)

	It("does not wait for an end that does not come", func() {
		s, to := openStream(false)
		s.long, s.single, s.set.FlushDelay = false, true, time.Millisecond
		s.ctx.who.served.Store(true)
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
		s.ctx.who.served.Store(true)
		Expect(s.FlushError()).To(Succeed())
		s.Finish()
		s.send() // by a timer that was late
		Expect(to.Flushed).To(BeFalse())
	})
})
