package cimd

import (
	"net/netip"
	"strings"

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
	return addressCheck(o)(network, netip.AddrPortFrom(ip, 443).String(), nil)
}

var _ = Describe("Checking an address before connecting", func() {
	// The ranges of the registries of special addresses, with their ends and neighbours.
	const refused = "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 " +
		"192.168.255.255 100.64.0.0 100.127.255.255 169.254.0.0 169.254.169.254 169.254.255.255 192.0.0.0 " +
		"192.0.0.255 192.0.2.1 198.51.100.1 203.0.113.255 192.31.196.1 192.52.193.1 192.175.48.1 192.88.99.1 " +
		"198.18.0.0 198.19.255.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255 :: " +
		"::ffff:1.1.1.1 ::127.0.0.1 ::1.1.1.1 64:ff9b::7f00:1 64:ff9b::1.1.1.1 64:ff9b:1::1 100:: " +
		"100::ffff:ffff:ffff:ffff 2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8::1 3fff:: " +
		"3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 2002:: 2002:7f00:1:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff " +
		"2620:4f:8000::1 5f00:: 5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff fc00:: " +
		"fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fe80::1 fe80::1%eth0 febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff " +
		"fec0::1 feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ff00:: ff02::1 1fff:ffff::1 4000::1 8000::1"
	const loopback = "127.0.0.1 127.255.255.255 ::1"
	const public = "1.0.0.0 1.1.1.1 8.8.8.8 223.255.255.255 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 " +
		"126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 " +
		"192.169.0.0 198.17.255.255 198.20.0.0 2606:4700::1111 2a00:1450:4001::1 2001:200::1 2003::1 3ffe::1"

	It("permits public ones, in development loopback too, and over http only loopback",
		Label("C18", "C49", "N7"), func() {
			overHTTP := func(address string) error {
				return onlyLoopback("tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 8080).String(), nil)
			}
			for addresses, permitted := range map[string][3]bool{
				public: {true, true, false}, loopback: {false, true, true}, refused: {false, false, false},
			} {
				for _, address := range strings.Fields(addresses) {
					Expect([3]bool{connectable(Config{}, address) == nil,
						connectable(Config{AllowLoopback: true}, address) == nil,
						overHTTP(address) == nil}).To(Equal(permitted), address)
				}
			}
			Expect(connectable(Config{AllowLoopback: true}, "::ffff:127.0.0.1")).NotTo(Succeed())
		})

	It("permits port 443, those of the operator, and any in development", Label("C7"), func() {
		checked := func(o Config, port uint16) error {
			target := netip.AddrPortFrom(netip.MustParseAddr("1.1.1.1"), port)
			return addressCheck(o)("tcp4", target.String(), nil)
		}
		Expect(checked(Config{}, 443)).To(Succeed())
		Expect(checked(Config{}, 80)).NotTo(Succeed())
		Expect(checked(Config{}, 8443)).NotTo(Succeed())
		Expect(checked(Config{Ports: []uint16{8443}}, 8443)).To(Succeed())
		Expect(checked(Config{AllowLoopback: true}, 40123)).To(Succeed())
	})
})
