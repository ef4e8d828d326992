package oauth

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Limits", Label("B6", "F9"), func() {
	It("have a default for each field", func() {
		Expect(Limits{}.WithDefaults()).To(Equal(DefaultLimits()))
		changed := Limits{MaxSessions: 7}.WithDefaults()
		Expect(changed.MaxSessions).To(Equal(7))
		Expect(changed.MaxSessionsPerPerson).To(Equal(100))
	})

	It("are valid by default", func() { Expect(DefaultLimits().check()).To(BeEmpty()) })

	DescribeTable("report", func(change func(*Limits), mistake string) {
		limits := DefaultLimits()
		change(&limits)
		Expect(texts(limits.check())).To(ConsistOf(ContainSubstring(mistake)))
	},
		Entry("a number below one", func(l *Limits) { l.MaxSessions = -1 }, "MaxSessions is -1: choose 1 or more"),
		Entry("IPv4 in IPv6", func(l *Limits) {
			l.UnlimitedNetworks = []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}
		}, "write networks such as 203.0.113.0/24"),
		Entry("an invalid network", func(l *Limits) {
			l.UnlimitedNetworks = []netip.Prefix{{}}
		}, "UnlimitedNetworks has"),
	)

	DescribeTable("exempt listed networks", func(address string, exempt bool) {
		limits := Limits{UnlimitedNetworks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"),
			netip.MustParsePrefix("2001:db8::/32")}}
		Expect(RequesterAt(netip.MustParseAddr(address), limits).Limited()).To(Equal(!exempt))
	},
		Entry(nil, "203.0.113.7", true), Entry(nil, "::ffff:203.0.113.7", true), Entry(nil, "203.0.114.7", false),
		Entry(nil, "2001:db8:1::1", true), Entry(nil, "2001:db8:1::1%eth0", true), Entry(nil, "2001:db9::1", false),
	)
})

var _ = Describe("The networks of a requester", Label("B6"), func() {
	DescribeTable("grow around the address", func(address string, networks ...string) {
		var found []string
		requester := RequesterAt(netip.MustParseAddr(address), Limits{})
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
		Expect(RequesterAt(netip.Addr{}, Limits{})).To(Equal(Requester{}))
		Expect(Requester{}.Address()).To(BeEmpty())
	})
})
