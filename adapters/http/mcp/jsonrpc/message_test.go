package jsonrpc

import (
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
			Expect([]bool{m.Decoded, m.Stateless, m.Initialize, m.Listen}).To(Equal([]bool{decoded, modern, initialize, listen}))
			Expect(strings.Join(m.Tools, " ")).To(Equal(strings.Join(tools, " ")))
		},
		Entry("in a call", callOfRead, true, false, false, false, "read"),
		Entry("in a batch", "["+callOfRead+","+`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`+"]", true, false, true, false, "read"),
		Entry("in a modern request", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, true, true, false, true),
		Entry("in a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, true, false, false, false),
		Entry("in an empty body", "", false, false, false, false),
		Entry("in an empty batch", "[]", false, false, false, false),
		Entry("in a JSON string", `"tools/call"`, false, false, false, false),
		Entry("after quoted brackets", `{"method":"tools/call","x":"`+strings.Repeat(`[\"`, 3000)+`","params":{"name":"read"}}`,
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

var _ = Describe("Comparing URIs of resources", Label("U26"), func() {
	DescribeTable("takes them as the same:", func(uri string, others ...string) {
		for _, other := range others {
			Expect(FoldURI(other)).To(Equal(FoldURI(uri)), other)
		}
	},
		Entry("dot segments and slashes", "file:///a/b", "file:///a/../a/b", "file:///a//b", "file:///./a/b", "file:////a/b", "file:/a/b", "FILE://localhost/A/b", `file:///a\b`, "file:///../a/b"),
		Entry("percent-encoding", "https://h/a b", "https://h/a%20b", "https://h/a%2520b", "https://H/%61%20b", "https://h/x%2f%2e%2e%2fa b"),
		Entry("space at the ends", "note:x", " note:x\u00a0", "NOTE:X"),
	)

	DescribeTable("takes them as different:", func(one, other string) {
		Expect(FoldURI(one)).NotTo(Equal(FoldURI(other)))
	},
		Entry("another host", "https://h/a", "https://i/a"), Entry("a folder", "file:///a/", "file:///a"), Entry("another scheme", "file:///a", "https:///a"),
	)

	DescribeTable("keeps patterns:", func(pattern string) { Expect(FoldURI(pattern)).To(Equal(pattern)) },
		Entry("for everything", "*"), Entry("with a scheme", "https://*"), Entry("without a slash", "https:*"), Entry("with a part of a path", "file:///public/*"),
		Entry("without a scheme", "*pay*"), Entry("with a template", "file:///{name}"),
	)
})
