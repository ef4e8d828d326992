package http

import (
	"net/http/httptest"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Following requests", func() {
	DescribeTable("knows an address no closer than its network", func(peer, network string) {
		request := httptest.NewRequest("GET", "/", nil)
		request.RemoteAddr = peer
		Expect(networkOf(echo.New().NewContext(request, nil).RealIP())).To(Equal(network))
	},
		Entry("of IPv4", "203.0.113.7:1", "203.0.113.0/24"),
		Entry("of IPv6", "[2001:db8:1:2:3::7]:1", "2001:db8:1::/48"),
		Entry("of IPv4 in IPv6", "[::ffff:203.0.113.7]:1", "203.0.113.0/24"),
		Entry("on a link", "[fe80::1%eth0]:1", "fe80::/48"),
		Entry("without an address", "", ""),
	)
})
