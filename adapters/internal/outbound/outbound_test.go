package outbound

import (
	"net"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestOutbound(t *testing.T) {
	suite.Run(t, "Reaching the site")
}

var _ = Describe("Reaching a server of the site", func() {
	DescribeTable("uses http with", Label("U20"), func(address string, allowed bool) {
		err := refusePublic("tcp", net.JoinHostPort(address, "80"), nil)
		if allowed {
			Expect(err).NotTo(HaveOccurred())
		} else {
			Expect(err).To(MatchError(ContainSubstring("use https")))
		}
	},
		Entry("this computer", "127.0.0.1", true), Entry("this computer in IPv6", "::1", true),
		Entry("a private network", "10.1.2.3", true),
		Entry("a private network, mapped", "::ffff:192.168.0.1", true),
		Entry("a private network in IPv6", "fd00::1", true),
		Entry("a private network through NAT64", Label("U20"), "64:ff9b::a01:203", true),
		Entry("no public address through NAT64", Label("U20"), "64:ff9b::cb00:7101", false),
		Entry("no public address", "203.0.113.1", false),
		Entry("no public address, mapped", "::ffff:203.0.113.1", false),
		Entry("not the metadata address of a cloud", "169.254.169.254", false),
		Entry("not the unspecified address", "0.0.0.0", false),
	)

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

	It("takes https, and http, for a name whose addresses the connection checks", func() {
		Expect(Options{}.CheckURL("https://cms.example/token?x=y")).To(Succeed())
		Expect(Options{}.CheckURL("http://site:3000/token")).To(Succeed())
	})

	DescribeTable("allows http for an IP address of this computer or a private network only",
		func(host string, will bool) {
			Expect(Options{}.CheckURL("http://"+host+"/") == nil).To(Equal(will))
			Expect(Options{}.CheckURL("https://" + host + "/")).To(Succeed())
		},
		Entry(nil, "127.0.0.1:3000", true), Entry(nil, "[::1]", true), Entry(nil, "10.1.2.3", true),
		Entry(nil, "[fd00::1]:80", true),
		Entry(nil, "203.0.113.1", false), Entry(nil, "[2001:db8::1]:80", false),
		Entry(nil, "[::ffff:203.0.113.1]", false), Entry(nil, "169.254.169.254", false))
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
