package jsonrpc

import (
	"net/http"

	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const callOfRead = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}`

var _ = Describe("Parsing a body as the SDK does", func() {
	DescribeTable("finds what dispatching needs",
		func(body string, decoded, modern, initialize, listen bool, tools ...string) {
			m, err := Peek([]byte(body))
			Expect(err).NotTo(HaveOccurred())
			Expect([]bool{m.Decoded, m.Stateless, m.Initialize, m.Listen}).
				To(Equal([]bool{decoded, modern, initialize, listen}))
			Expect(strings.Join(m.Tools, " ")).To(Equal(strings.Join(tools, " ")))
		},
		Entry("in a call", callOfRead, true, false, false, false, "read"),
		Entry("in a batch", "["+callOfRead+","+`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`+"]", true,
			false, true, false, "read"),
		Entry("in a modern request",
			`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, true, true, false, true),
		Entry("in a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, true, false, false, false),
		Entry("in an empty body", "", false, false, false, false),
		Entry("in an empty batch", "[]", false, false, false, false),
		Entry("in a JSON string", `"tools/call"`, false, false, false, false),
		Entry("after quoted brackets", `{"method":"tools/call","x":"`+strings.Repeat(`[\"`, 3000)+
			`","params":{"name":"read"}}`,
			true, false, false, false, "read"),
	)

	It("returns copies of tool names", func() {
		body := []byte(callOfRead)
		m, err := Peek(body)
		Expect(err).NotTo(HaveOccurred())
		clear(body)
		Expect(m.Tools).To(Equal([]string{"read"}))
	})

	It("does not parse a message that is nested too deeply", func() {
		nested := func(depth int) string {
			return `{"method":"tools/call","x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
		}
		for depth, decoded := range map[int]bool{999: true, 1000: false} {
			m, err := Peek([]byte(nested(depth)))
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Decoded).To(Equal(decoded))
		}
	})
})

var _ = DescribeTable("The media type of a strict body may have the charset", Label("U11"), func(contentType string) {
	_, err := ReadStrict(http.Header{"Content-Type": {contentType}}, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	Expect(err).NotTo(HaveOccurred())
},
	Entry("utf-8", "application/json; charset=utf-8"),
	Entry("UTF-8 in quotes", `Application/JSON;charset="UTF-8"`),
	Entry("utf8, as some clients call it", "application/json; charset=utf8"),
)
