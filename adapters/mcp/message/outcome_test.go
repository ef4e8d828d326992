package message

import (
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Reading the outcome of a call in its response", Label("V1"), func() {
	const (
		ok = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a \"quote\", a \\ and ` +
			`{\"error\":{\"code\":1}}"}],"error":{"code":5},"isError": false }}`
		failed = `{"result":{"content":[{"isError":false}],"isError":true},"id":7,"jsonrpc":"2.0"}`
		denied = ` {"jsonrpc":"2.0","id":7,"error":{"data":{"code":3},"message":"no","code": -32602}}`
		asked  = `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"result":1}}`
	)
	DescribeTable("in any pieces", func(events bool, body string, expected string) {
		for _, size := range []int{1, 2, 7, len(body)} {
			o, header := NewOutcome(NewBodyMemory(1<<20).Reserve("ann")), http.Header{}
			if events {
				header.Set("Content-Type", EventStream)
			}
			for at := 0; at < len(body); at += size {
				o.Read(header, []byte(body[at:min(len(body), at+size)]))
			}
			o.End()
			found := "none"
			switch {
			case o.Found && o.IsError && o.Code != nil:
				found = strings.Repeat("error", int(*o.Code/-32602))
			case o.Found && o.IsError:
				found = "error without code"
			case o.Found && o.Failed:
				found = "tool error"
			case o.Found:
				found = "ok"
			}
			Expect(found).To(Equal(expected))
		}
	},
		Entry("of JSON with a result", false, ok, "ok"),
		Entry("of JSON with a failed tool", false, failed, "tool error"),
		Entry("of JSON with an error", false, denied, "error"),
		Entry("of JSON that is cut off", false, ok[:len(ok)-1], "none"),
		Entry("of events before the response", true, ": keep-alive\n\nevent: message\nid: 3\ndata: "+asked+"\n\ndata:"+
			denied+"\n\n", "error"),
		Entry("of events with other line ends", true, "data: "+asked+"\r\n\r\ndata: "+failed+"\r\n\r\n", "tool error"),
		Entry("of events with data in two lines", true,
			"data: "+denied[:18]+"\r\ndata: "+denied[18:]+"\r\rdata", "error"),
		Entry("of an event that is not complete", true, "data: "+ok+"\n", "none"),
	)

	It("uses memory for a long event until it has read it", Label("G19"), func() {
		memory := NewBodyMemory(1 << 20)
		o, other := NewOutcome(memory.Reserve("ann")), memory.Reserve("bob")
		header := http.Header{"Content-Type": {EventStream}}
		o.Read(header, []byte("data: "+strings.Repeat("x", 400<<10)))
		Expect(other.Extend(200 << 10)).To(MatchError(ErrNoMemory))
		o.Read(header, []byte("\n\n"))
		Expect(other.Extend(200 << 10)).To(Succeed())
	})

	It("reports an event that is too long once, whatever follows in it", Label("G19"), func() {
		var emitted []string
		events := Events{
			Reserve: func(int64) error { return ErrNoMemory },
			Emit: func(event []byte, failed error) error {
				emitted = append(emitted, fmt.Sprintf("%s%v", event, failed))
				return nil
			},
		}
		Expect(events.Read([]byte("data: " + strings.Repeat("x", 64<<10) + "\r\n: inside\r\n\r\ndata: a\r\n\r\n"))).
			To(Succeed())
		Expect(emitted).To(Equal([]string{ErrNoMemory.Error(), "\n<nil>", "data: a\r\n\r<nil>", "\n<nil>"}))
	})

	It("describes requests, also those without an id, with canonical arguments", Label("V2"), func() {
		body := Body{
			Messages: decoded(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":` +
				`{"b":1.0,"a":"\u00e4\ud83d\ude00"}}},{"jsonrpc":"2.0","method":"tools/call"},` +
				`{"jsonrpc":"2.0","id":2,"result":{}},` +
				`{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{"uri":"u"}},` +
				`{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p"}},` +
				`{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"arguments":{}}}]`),
		}
		requests := body.Requests()
		Expect(requests).To(Equal([]Request{
			{Method: "tools/call", Name: "a", Arguments: []byte(`{"a":"ä😀","b":1}`)}, {Method: "tools/call"},
			{Method: "resources/read", Arguments: []byte(`{"uri":"u"}`)},
			{Method: "prompts/get", Name: "p"}, {Method: "tools/list"},
		}))
		Expect(Canonical([]byte(`{"b":"\ud800"}`))).NotTo(BeEmpty())
	})
})
