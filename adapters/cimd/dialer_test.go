package cimd

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// connectable returns the result of the dialer's check of an address, with port 443 if it has none.
func connectable(o Config, address string) error {
	ip := netip.MustParseAddr(address)
	network := "tcp6"
	if ip.Is4() {
		network = "tcp4"
	}
	return newAddressCheck(o).control(network, netip.AddrPortFrom(ip, 443).String(), nil)
}

var _ = Describe("Checking an address before connecting", func() {
	DescribeTable("refuses", Label("C18", "N7"),
		func(addresses ...string) {
			for _, address := range addresses {
				Expect(connectable(Config{}, address)).NotTo(Succeed(), address)
			}
		},
		Entry("this network", "0.0.0.0", "0.255.255.255"),
		Entry("private networks", "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0",
			"192.168.255.255"),
		Entry("shared addresses of carriers", "100.64.0.0", "100.127.255.255"),
		Entry("loopback", "127.0.0.1", "127.255.255.255", "::1"),
		Entry("link-local addresses, with the metadata services of clouds", "169.254.0.0", "169.254.169.254",
			"169.254.255.255"),
		Entry("protocol assignments", "192.0.0.0", "192.0.0.255"),
		Entry("documentation networks", "192.0.2.1", "198.51.100.1", "203.0.113.255"),
		Entry("AS112 and AMT", "192.31.196.1", "192.52.193.1", "192.175.48.1", "2620:4f:8000::1"),
		Entry("6to4 relays", "192.88.99.1"),
		Entry("benchmarks", "198.18.0.0", "198.19.255.255"),
		Entry("multicast", "224.0.0.0", "239.255.255.255", "ff00::", "ff02::1"),
		Entry("reserved addresses and broadcast", "240.0.0.0", "255.255.255.255"),
		Entry("the unspecified address", "::"),
		Entry("IPv4 addresses in IPv6", "::ffff:127.0.0.1", "::ffff:1.1.1.1", "::127.0.0.1", "::1.1.1.1"),
		Entry("NAT64", "64:ff9b::7f00:1", "64:ff9b::1.1.1.1", "64:ff9b:1::1"),
		Entry("discard-only addresses", "100::", "100::ffff:ffff:ffff:ffff"),
		Entry("Teredo and other protocol assignments", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
		Entry("IPv6 documentation networks", "2001:db8::1", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
		Entry("6to4", "2002::", "2002:7f00:1::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
		Entry("segment routing", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
		Entry("unique local addresses", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
		Entry("link-local IPv6 addresses, with a zone or without", "fe80::1", "fe80::1%eth0",
			"febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
		Entry("site-local addresses", "fec0::1", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
		Entry("unallocated addresses", "1fff:ffff::1", "4000::1", "8000::1"),
	)

	DescribeTable("permits", Label("C18"),
		func(addresses ...string) {
			for _, address := range addresses {
				Expect(connectable(Config{}, address)).To(Succeed(), address)
			}
		},
		Entry("public IPv4 addresses", "1.0.0.0", "1.1.1.1", "8.8.8.8", "223.255.255.255"),
		Entry("neighbours of refused ranges", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
			"126.255.255.255", "128.0.0.0",
			"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0",
			"198.17.255.255", "198.20.0.0"),
		Entry("public IPv6 addresses", "2606:4700::1111", "2a00:1450:4001::1", "2001:200::1", "2003::1", "3ffe::1"),
	)

	DescribeTable("in development permits only loopback in addition", Label("C49"),
		func(address string, permitted bool) {
			Expect(connectable(Config{AllowLoopback: true}, address) == nil).To(Equal(permitted))
		},
		Entry("127.0.0.1", "127.0.0.1", true),
		Entry("127.255.255.255", "127.255.255.255", true),
		Entry("::1", "::1", true),
		Entry("a public address", "1.1.1.1", true),
		Entry("this network", "0.0.0.0", false),
		Entry("the unspecified address", "::", false),
		Entry("a private address", "10.0.0.1", false),
		Entry("a link-local address", "169.254.169.254", false),
		Entry("loopback in NAT64", "64:ff9b::7f00:1", false),
		Entry("a unique local address", "fd00::1", false),
	)

	DescribeTable("over http permits only loopback", Label("C49"),
		func(address string, permitted bool) {
			Expect(onlyLoopback("tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 8080).String(), nil) == nil).
				To(Equal(permitted))
		},
		Entry("127.0.0.1", "127.0.0.1", true),
		Entry("127.255.255.255", "127.255.255.255", true),
		Entry("::1", "::1", true),
		Entry("a public address", "1.1.1.1", false),
		Entry("the unspecified address", "::", false),
		Entry("a private address", "10.0.0.1", false),
		Entry("a link-local address", "169.254.169.254", false),
	)

	DescribeTable("checks the port", Label("C7"),
		func(o Config, port uint16, permitted bool) {
			target := netip.AddrPortFrom(netip.MustParseAddr("1.1.1.1"), port)
			Expect(newAddressCheck(o).control("tcp4", target.String(), nil) == nil).To(Equal(permitted))
		},
		Entry("443", Config{}, uint16(443), true),
		Entry("80", Config{}, uint16(80), false),
		Entry("8443 without a setting of the operator", Config{}, uint16(8443), false),
		Entry("8443 with that setting", Config{Ports: []uint16{8443}}, uint16(8443), true),
		Entry("any in development", Config{AllowLoopback: true}, uint16(40123), true),
	)
})
