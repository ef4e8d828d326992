package cimd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("The breaker for slow hosts", Label("C53"), func() {
	var hosts *breaker
	var clock *handClock
	BeforeEach(func() { hosts, clock = newBreaker(), newClock() })
	timeout := fmt.Errorf("get: %w", context.DeadlineExceeded)
	timesOut := func(times int) {
		for range times {
			hosts.fetched("slow.example", timeout, clock.now())
		}
	}
	admits := func(host string) (bool, error) { return hosts.check(host, clock.now()) }

	It("calls a host slow after one timeout, and pauses after three in a row", func() {
		Expect(admits("slow.example")).To(BeFalse())
		timesOut(2)
		Expect(admits("slow.example")).To(BeTrue())
		timesOut(1)
		clock.advance(4 * time.Second)
		_, err := admits("slow.example")
		Expect(err).To(MatchError(oauth.ErrMetadataSlow))
		Expect(oauth.WaitOf(err)).To(Equal(6 * time.Second))
		Expect(admits("other.example")).To(BeFalse())
	})

	DescribeTable("doubles the pause with each timeout", func(times int, pause time.Duration) {
		timesOut(times)
		clock.advance(pause - time.Nanosecond)
		_, err := admits("slow.example")
		Expect(err).To(HaveOccurred())
		clock.advance(time.Nanosecond)
		Expect(admits("slow.example")).To(BeTrue())
	},
		Entry(nil, 3, 10*time.Second), Entry(nil, 4, 20*time.Second), Entry(nil, 7, 160*time.Second),
		Entry(nil, 8, 5*time.Minute), Entry(nil, 1000, 5*time.Minute),
	)

	DescribeTable("resets a host that answers", func(answer error) {
		timesOut(3)
		hosts.fetched("slow.example", answer, clock.now())
		Expect(admits("slow.example")).To(BeFalse())
	},
		Entry("with a document", nil),
		Entry("with an error", errors.New("404")),
	)

	It("counts the timeouts of the network layer", func() {
		hosts.fetched("slow.example", &net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}}, clock.now())
		Expect(admits("slow.example")).To(BeTrue())
	})

	It("ends a pause when the clock is set back by hours", Label("I23"), func() {
		timesOut(3)
		clock.advance(-time.Hour)
		Expect(admits("slow.example")).To(BeTrue())
	})
})
