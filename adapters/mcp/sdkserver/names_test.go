package sdkserver

import (
	"context"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
)

// named are the params of a method of the host.
type named struct {
	sdk.ParamsBase
	Name string `json:"name,omitempty"`
	URI  string `json:"uri,omitempty"`
}

var _ = Describe("Policies of a server in this process", Label("U26"), func() {
	var s *site
	var calls []audit.Call
	BeforeEach(func() {
		calls = nil
		open := func(_ oauth.Caller, name string) bool { return !strings.Contains(name, "secret") }
		s = openSite(func(o *Options) {
			o.Prompts, o.Resources = open, open
			o.Audit = func(_ context.Context, call audit.Call) { calls = append(calls, call) }
		})
		for _, name := range []string{"open", "secret"} {
			s.sdk.AddPrompt(&sdk.Prompt{Name: name},
				func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
					return &sdk.GetPromptResult{}, nil
				})
			read := func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "x:///" + name}}}, nil
			}
			s.sdk.AddResource(&sdk.Resource{Name: name, URI: "x:///" + name}, read)
			s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{Name: name, URITemplate: "x:///" + name + "/{id}"}, read)
		}
	})
	ask := func(ctx context.Context, method, params string) string {
		GinkgoHelper()
		return s.send(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":`+params+
			`}`, in(s.session(ctx, alice), alice)...).body
	}

	DescribeTable("list what the caller may use:", func(ctx SpecContext, method, shown string) {
		Expect(ask(ctx, method, `{}`)).To(And(ContainSubstring(shown), Not(ContainSubstring("secret"))))
	},
		Entry("prompts", "prompts/list", `"name":"open"`), Entry("resources", "resources/list", `"uri":"x:///open"`),
		Entry("templates", "resources/templates/list", `"uriTemplate":"x:///open/{id}"`),
	)

	DescribeTable("refuse the rest as unknown:", func(ctx SpecContext, method, params, message string) {
		Expect(ask(ctx, method, params)).To(And(ContainSubstring(`"code":-32602`), ContainSubstring(message)))
		Expect(calls).To(
			ContainElement(And(HaveField("Method", method), HaveField("Rule", "U26"),
				HaveField("Outcome", audit.Refused))))
	},
		Entry("a prompt", "prompts/get", `{"name":"secret"}`, `unknown prompt \"secret\"`),
		Entry("a resource", "resources/read", `{"uri":"x:///secret"}`, "Resource not found"),
		Entry("a subscription", "resources/subscribe", `{"uri":"x:///secret"}`, "Resource not found"),
		Entry("a completion for a prompt", "completion/complete",
			`{"ref":{"type":"ref/prompt","name":"secret"},"argument":{"name":"a","value":"b"}}`, `unknown prompt`),
		Entry("a completion for a resource", "completion/complete",
			`{"ref":{"type":"ref/resource","uri":"x:///secret/{id}"},"argument":{"name":"a","value":"b"}}`,
			"Resource not found"),
	)

	It("refuse what a method of the host names", func(ctx SpecContext) {
		for _, method := range []string{"tools/get", "prompts/peek", "resources/peek"} {
			Expect(sdk.AddReceivingCustomMethod(s.sdk, method,
				func(context.Context, *sdk.ServerSession, *named) (*sdk.CallToolResult, error) {
					return text("answered"), nil
				})).To(Succeed())
		}
		Expect(ask(ctx, "tools/get", `{"name":"read"}`)).To(ContainSubstring("answered"))
		hidden := `{"jsonrpc":"2.0","id":2,"method":"tools/get","params":{"name":"publish"}}`
		Expect(s.send(ctx, http.MethodPost, "/mcp", hidden, in(s.session(ctx, bob), bob)...).body).
			To(ContainSubstring(`unknown tool \"publish\"`))
		Expect(ask(ctx, "tools/get", `{"name":"write"}`)).To(ContainSubstring("insufficient_scope"))
		Expect(ask(ctx, "prompts/peek", `{"name":"secret"}`)).To(ContainSubstring(`unknown prompt \"secret\"`))
		Expect(ask(ctx, "resources/peek", `{"uri":"x:///secret"}`)).To(ContainSubstring("Resource not found"))
		Expect(ask(ctx, "resources/peek", `{"uri":"x:///open"}`)).To(ContainSubstring("answered"))
	})

	It("refuse a stream of notifications about a resource", func(ctx SpecContext) {
		listen := modern("subscriptions/listen", `"notifications":{"resourceSubscriptions":["x:///secret"]}`)
		Expect(s.send(ctx, http.MethodPost, "/mcp", listen, modernHeaders(alice, "subscriptions/listen", "")...).body).
			To(ContainSubstring("Resource not found"))
	})
})
