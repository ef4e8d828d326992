package mcp

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Looking into a body", func() {
	DescribeTable("finds what dispatching needs",
		func(body string, decoded, modern, initialize, listen bool, tools ...string) {
			m := peek([]byte(body))
			Expect([]bool{m.decoded, m.modern, m.initialize, m.listen}).To(Equal([]bool{decoded, modern, initialize, listen}))
			Expect(strings.Join(m.tools, " ")).To(Equal(strings.Join(tools, " ")))
		},
		Entry("in a call", call(1, "read"), true, false, false, false, "read"),
		Entry("in a batch", "["+call(1, "read")+","+initialize+"]", true, false, true, false, "read"),
		Entry("in a modern request", modern("subscriptions/listen", `"x":1`), true, true, false, true),
		Entry("in a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, true, false, false, false),
		Entry("in nothing", "", false, false, false, false),
		Entry("in an empty batch", "[]", false, false, false, false),
		Entry("in something else", `"tools/call"`, false, false, false, false),
		Entry("behind a quoted bracket", `{"method":"tools/call","x":"`+strings.Repeat(`[\"`, 3000)+`","params":{"name":"read"}}`,
			true, false, false, false, "read"),
	)

	It("gives names of tools that are no part of it", func() {
		body := []byte(call(1, "read"))
		m := peek(body)
		clear(body)
		Expect(m.tools).To(Equal([]string{"read"}))
	})

	It("keeps away from what is nested too deeply", func() {
		nested := func(depth int) string {
			return `{"method":"tools/call","x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
		}
		Expect(peek([]byte(nested(999))).decoded).To(BeTrue())
		Expect(peek([]byte(nested(1000))).decoded).To(BeFalse())
	})
})
