package sdkserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// askForName opens a session and calls a tool that elicits a name. It returns the id of the
// elicitation.
func askForName(ctx context.Context, s *site, revision string) (session string, stream follow,
	question json.RawMessage) {
	GinkgoHelper()
	sdk.AddTool(s.sdk, &sdk.Tool{Name: "ask"},
		func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			given, err := r.Session.Elicit(ctx,
				&sdk.ElicitParams{Message: "Your name?", RequestedSchema: map[string]any{
					"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
				}})
			if err != nil {
				return nil, nil, err
			}
			return text(fmt.Sprint(given.Content["name"])), nil, nil
		})
	opened := s.send(ctx, http.MethodPost, "/mcp",
		strings.NewReplacer(`"capabilities":{}`, `"capabilities":{"elicitation":{}}`, "2025-11-25", revision).
			Replace(initialize), as(alice)...)
	session = opened.Header.Get("Mcp-Session-Id")
	talk := append(as(alice), "Mcp-Session-Id", session, "MCP-Protocol-Version", revision)
	s.send(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, talk...)
	stream = s.follow(ctx, http.MethodPost, "/mcp", call(2, "ask"), talk...)
	asked := stream.data()
	if asked == "" { // the priming event
		asked = stream.data()
	}
	var request struct{ ID json.RawMessage }
	Expect(json.Unmarshal([]byte(asked), &request)).To(Succeed(), asked)
	return session, stream, request.ID
}

var _ = Describe("A tool that waits for a response", Label("G18"), func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	// ask sends the answer, made with the id of the elicitation, and returns the responses to it
	// and to the call.
	ask := func(ctx SpecContext, revision, answer string) (sent answer, result string) {
		session, stream, question := askForName(ctx, s, revision)
		sent = s.send(ctx, http.MethodPost, "/mcp", fmt.Sprintf(answer, question),
			append(as(alice), "Mcp-Session-Id", session, "MCP-Protocol-Version", revision)...)
		return sent, stream.data()
	}

	DescribeTable("gets an error when it is refused:", func(ctx SpecContext, revision, answer string) {
		sent, result := ask(ctx, revision, answer)
		Expect(sent.StatusCode).To(Equal(http.StatusBadRequest), sent.body)
		Expect(result).To(ContainSubstring("the client's answer was refused"))
	},
		Entry("an error that is a string", "2025-11-25", `{"jsonrpc":"2.0","id":%s,"error":"no"}`),
		Entry("a batch in a revision without batches", "2025-11-25",
			`[{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}]`),
		Entry("an element of a batch", "2025-03-26",
			`[{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}},{"jsonrpc":"1.0","id":7,"method":"ping"}]`),
	)

	It("gets a response with half a surrogate pair, as Go reads it", func(ctx SpecContext) {
		sent, result := ask(ctx, "2025-11-25",
			`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"cut \ud83d"}}}`)
		Expect(sent.StatusCode).To(Equal(http.StatusAccepted))
		Expect(result).To(ContainSubstring("cut \ufffd"))
	})
})

var _ = Describe("Unusual Unicode", Label("U11"), func() {
	It("reaches a tool of the SDK", func(ctx SpecContext) {
		s := openSite()
		var got string
		s.sdk.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				got = string(r.Params.Arguments)
				return text(""), nil
			})
		for _, arguments := range []string{`{"x":"cut \ud83d"}`, `{"\ud83d":1}`, `{"x":"a\u0000b"}`,
			"{\"x\":\"\uffff\ufeff\"}"} {
			answer := s.send(ctx, http.MethodPost, "/mcp", modern("tools/call", `"name":"echo","arguments":`+arguments),
				modernHeaders(alice, "tools/call", "echo")...)
			Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.body)
			Expect(got).To(Equal(arguments))
		}
	})
})
