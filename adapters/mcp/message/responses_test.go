package message

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

var _ = Describe("Telling an answer from other messages", func() {
	DescribeTable("knows an answer, as the SDK writes it, from", func(message sdk.Message, is bool) {
		text, err := sdk.EncodeMessage(message)
		Expect(err).NotTo(HaveOccurred())
		Expect(IsResponse(text)).To(Equal(is), string(text))
	},
		Entry("a result", &sdk.Response{ID: made(1.0), Result: []byte(`{"method":"x"}`)}, true),
		Entry("a result with a name that looks like a member",
			&sdk.Response{ID: made(`","method":"`), Result: []byte(`{}`)}, true),
		Entry("an error", &sdk.Response{ID: made("a"), Error: &sdk.Error{Code: 1, Message: "no"}}, true),
		Entry("a request of the server",
			&sdk.Request{ID: made(1.0), Method: "ping", Params: []byte(`{"result":1}`)}, false),
		Entry("a request with a name that looks like a member",
			&sdk.Request{ID: made(`","result":"`), Method: "ping"}, false),
		Entry("a notification", &sdk.Request{Method: "notifications/progress", Params: []byte(`{"error":1}`)},
			false),
	)

	It("finds no answer in text that is no message", func() {
		for _, text := range []string{"", "null", "[", `[{"result":1}]`, `{"a":{"result":1}}`} {
			Expect(IsResponse([]byte(text))).To(BeFalse(), text)
		}
	})
})

func made(id any) sdk.ID {
	made, _ := sdk.MakeID(id)
	return made
}
