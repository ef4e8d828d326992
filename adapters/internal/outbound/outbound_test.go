package outbound

import (
	"net"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestOutbound(t *testing.T) {
	suite.Run(t, "Reaching the site")
}

var _ = Describe("Reaching a server of the site", func() {
	It("uses http with this computer and private networks only", Label("U20"), func() {
		for _, address := range strings.Fields("127.0.0.1 ::1 10.1.2.3 ::ffff:192.168.0.1 fd00::1 64:ff9b::a01:203") {
			Expect(refusePublic("tcp", net.JoinHostPort(address, "80"), nil)).To(Succeed(), address)
		}
		for _, address := range []string{"64:ff9b::cb00:7101", "203.0.113.1", "::ffff:203.0.113.1",
			"169.254.169.254", "0.0.0.0"} {
			Expect(refusePublic("tcp", net.JoinHostPort(address, "80"), nil)).
				To(MatchError(ContainSubstring("use https")), address)
		}
		for host, will := range map[string]bool{"127.0.0.1:3000": true, "[fd00::1]:80": true, "203.0.113.1": false} {
			Expect(Options{}.CheckURL("http://"+host+"/") == nil).To(Equal(will), host)
			Expect(Options{}.CheckURL("https://" + host + "/")).To(Succeed())
		}
		Expect(Options{}.CheckURL("http://site:3000/token")).To(Succeed(), "the connection checks its addresses")
	})

	DescribeTable("refuses the address", func(address, remedy string) {
		Expect(Options{}.CheckURL(address)).
			To(MatchError(And(ContainSubstring(remedy), Not(ContainSubstring("s3cret")))))
	},
		Entry("of nothing", "", "write it like"),
		Entry("without a scheme", "cms.example/s3cret", "it has no scheme: begin it with https://"),
		Entry("of a file", "file:///s3cret", "write it like"),
		Entry("that is none", "https://%zz/s3cret", "write it like"),
		Entry("with a user", "https://me:s3cret@cms.example/", "leave them out"),
		Entry("with a fragment", "https://cms.example/#s3cret", "leave them out"),
	)
})

var _ = Describe("Naming the reason of a failed connection", Label("U31"), func() {
	It("is the same text for the same failure of a name server, whose error has a port that changes", func() {
		lookup := func(port string) error {
			return Reason(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
				Err:       "read udp 10.0.0.2:" + port + "->10.0.0.1:53: i/o timeout",
				Name:      "tools",
				Server:    "10.0.0.1:53",
				IsTimeout: true,
			}})
		}
		Expect(lookup("40001")).To(Equal(lookup("40002")))
		Expect(lookup("40001")).To(MatchError("it cannot be reached: no name server could look up tools"))
	})
})
