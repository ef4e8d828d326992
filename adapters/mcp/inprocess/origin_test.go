package inprocess

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Refusing other origins", Label("G1"), func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	DescribeTable("refuses before it checks the token",
		func(ctx SpecContext, headers ...string) {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodOptions} {
				got := s.send(ctx, method, "/mcp", "", append(headers, as(alice)...)...)
				Expect(got.StatusCode).To(Equal(http.StatusForbidden))
				Expect(got.body).
					To(MatchJSON(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Forbidden: this host or origin ` +
						`is not allowed"}}`))
				Expect(got.challenge()).To(BeEmpty())
				Expect(got.Header).NotTo(HaveKey("Access-Control-Allow-Origin"))
			}
			Expect(s.tokens.asked).To(BeEmpty())
		},
		Entry("another origin", "Origin", "https://evil.example"),
		Entry("a hidden origin", "Origin", "null"),
		Entry("an empty origin", "Origin", ""),
		Entry("the issuer's host over http", "Origin", "http://cms.example"),
		Entry("a second origin", "Origin", "https://cms.example", "Origin", "https://evil.example"),
	)

	DescribeTable("admits and sends CORS headers for",
		func(ctx SpecContext, origin string) {
			got := s.send(ctx, http.MethodPost, "/mcp", initialize, "Origin", origin)
			Expect(got.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(got.Header.Get("Access-Control-Allow-Origin")).To(Equal(origin))
			Expect(got.Header.Get("Access-Control-Expose-Headers")).
				To(Equal("WWW-Authenticate, Mcp-Session-Id, Retry-After"))
			Expect(got.Header.Values("Vary")).To(ContainElement("Origin"))
		},
		Entry("the issuer", "https://cms.example"),
		Entry("an allowed origin", "https://app.example"),
	)

	It("answers a preflight without a token", Label("G2"), func(ctx SpecContext) {
		for _, path := range []string{"/mcp", "/mcp/message"} {
			got := s.send(ctx, http.MethodOptions, path, "", "Origin", "https://app.example",
				"Access-Control-Request-Headers", "authorization, Mcp-Param-Region, x-evil")
			Expect(got.StatusCode).To(Equal(http.StatusNoContent))
			Expect(got.Header.Get("Access-Control-Allow-Origin")).To(Equal("https://app.example"))
			Expect(got.Header.Get("Access-Control-Allow-Methods")).To(Equal("GET, POST, DELETE"))
			Expect(got.Header.Get("Access-Control-Allow-Headers")).
				To(Equal("Authorization, Content-Type, Accept, Last-Event-ID, " +
					"MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Mcp-Param-Region"))
		}
	})
})
