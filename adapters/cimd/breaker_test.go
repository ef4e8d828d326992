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

var _ = Describe("The breakers for slow hosts", Label("C53"), func() {
	const pause = time.Hour
	var hosts breakers
	BeforeEach(func() { hosts = newBreakers(pause) })
	timeout := fmt.Errorf("get: %w", context.DeadlineExceeded)
	timesOut := func(times int) {
		for range times {
			hosts.record("slow.example", timeout)
		}
	}

	It("call a host slow after one timeout, and pause after three in a row", func() {
		Expect(hosts.check("slow.example")).To(BeFalse())
		timesOut(2)
		Expect(hosts.check("slow.example")).To(BeTrue())
		timesOut(1)
		_, err := hosts.check("slow.example")
		Expect(err).To(MatchError(oauth.ErrMetadataSlow))
		Expect(oauth.WaitOf(err)).To(Equal(pause))
		Expect(hosts.check("other.example")).To(BeFalse())
	})

	It("let one fetch try after a pause, whose timeout begins the next pause", func() {
		hosts = newBreakers(200 * time.Millisecond)
		refusal := func() error { _, err := hosts.check("slow.example"); return err }
		for _, times := range []int{3, 1} {
			timesOut(times)
			Expect(refusal()).To(MatchError(oauth.ErrMetadataSlow))
			Eventually(refusal).Should(Succeed())
			Expect(hosts.check("slow.example")).To(BeTrue(), "it is still slow")
		}
	})

	DescribeTable("reset a host that answers", func(answer error) {
		timesOut(3)
		hosts.record("slow.example", answer)
		Expect(hosts.check("slow.example")).To(BeFalse())
	},
		Entry("with a document", nil),
		Entry("with an error", errors.New("404")),
	)

	It("count the timeouts of the network layer", func() {
		hosts.record("slow.example", &net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}})
		Expect(hosts.check("slow.example")).To(BeTrue())
	})
})
