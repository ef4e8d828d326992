package jsonrpc

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Another spelling of a method", Label("G19"), func() {
	DescribeTable("is recognized", func(method, exact string) { Expect(variantOfMethod(method)).To(Equal(exact)) },
		Entry("of a method of MCP", "Tools/Call", "tools/call"),
		Entry("of another method that names tools", "Tools/get", "tools/get"),
		Entry("in full width", "ｔｏｏｌｓ/get", "tools/get"),
		Entry("with an invisible character", "prompts\u200b/run", "prompts/run"),
		Entry("of another method that names resources", "RESOURCES/Copy", "resources/copy"),
		Entry("but not of an exact method", "tools/call", ""),
		Entry("nor of another method with capitals", "tools/setLevel", ""),
		Entry("nor of any other method", "Custom/Method", ""),
	)
})
