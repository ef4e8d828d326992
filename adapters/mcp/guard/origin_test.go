package guard

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Refusing other hosts", Label("G1"), func() {
	DescribeTable("allows the Host header of", func(resource, host string, known bool) {
		g := newGate(Options{Issuer: resource, Resource: oauth.NewResource(resource + "/mcp"),
			AllowedHosts: []string{"tunnel.example"}})
		Expect(g.allowsHost(host)).To(Equal(known))
	},
		Entry("a public server with any name, because proxies change it", "https://cms.example", "10.0.0.7:8080", true),
		Entry("a server on loopback with its address", "http://127.0.0.1:8080", "127.0.0.1:8080", true),
		Entry("a server on loopback with its name", "http://127.0.0.1:8080", "LOCALHOST:8080", true),
		Entry("a server on loopback with its other address", "http://localhost:8080", "[::1]:8080", true),
		Entry("a server on loopback with an allowed name", "http://127.0.0.1:8080", "Tunnel.example", true),
		Entry("no server with a name that was rebound to loopback", "http://127.0.0.1:8080", "evil.example", false),
		Entry("no server with a name that only begins like localhost", "http://127.0.0.1:8080",
			"localhost.evil.example:8080", false),
	)
})
