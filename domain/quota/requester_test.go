package quota

import (
	"net/netip"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestQuota(t *testing.T) { suite.Run(t, "Limits") }

var _ = Describe("The networks of a requester", Label("B6"), func() {
	DescribeTable("grow around the address", func(address string, networks ...string) {
		var found []string
		requester := RequesterAt(netip.MustParseAddr(address), nil)
		for _, network := range requester.Networks() {
			found = append(found, network.String())
		}
		Expect(found).To(Equal(networks))
		Expect(requester.Address()).To(Equal(networks[0]))
	},
		Entry("in IPv4", "203.0.113.7", "203.0.113.7/32", "203.0.113.0/24"),
		Entry("in IPv4 written as IPv6", "::ffff:203.0.113.7", "203.0.113.7/32", "203.0.113.0/24"),
		Entry("in IPv6", "2001:db8:1:2ff:3::4", "2001:db8:1:2ff::/64", "2001:db8:1:200::/56", "2001:db8:1::/48"),
		Entry("in IPv6 with a zone", "fe80::1%eth0", "fe80::/64", "fe80::/56", "fe80::/48"),
	)

	It("are none without an address", func() {
		Expect(RequesterAt(netip.Addr{}, nil)).To(Equal(Requester{}))
		Expect(Requester{}.Address()).To(BeEmpty())
	})

	DescribeTable("are none in a listed network", func(address string, exempt bool) {
		listed := []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")}
		Expect(RequesterAt(netip.MustParseAddr(address), listed).Limited()).To(Equal(!exempt))
	},
		Entry(nil, "203.0.113.7", true), Entry(nil, "::ffff:203.0.113.7", true), Entry(nil, "203.0.114.7", false),
		Entry(nil, "2001:db8:1::1", true), Entry(nil, "2001:db8:1::1%eth0", true), Entry(nil, "2001:db9::1", false),
	)
})
