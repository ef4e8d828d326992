package gateway

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Checking configured headers", Label("U5"), func() {
	DescribeTable("refuses", func(name string) { Expect(checkHeader(name)).NotTo(Succeed()) },
		Entry(nil, "cookie"), Entry(nil, "authorization"), Entry(nil, "X-PASTEPORT-Subject"),
		Entry(nil, "x-forwarded-for"), Entry(nil, "X_Toolsets"), Entry(nil, "Mcp-Session-Id"),
		Entry(nil, ""), Entry(nil, "a b"), Entry(nil, "a:b"), Entry(nil, "Connection"), Entry(nil, "signature"),
		Entry(nil, "accept-encoding"))

	It("accepts others", func() { Expect(checkHeader("x-toolsets")).To(Succeed()) })
})
