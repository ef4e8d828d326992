package features_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

func call(params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`
}

var _ = Describe("Asking for scopes before an upstream sees the call", Label("gateway", "U11", "G10"), func() {
	var upstream *UpstreamServer
	var world *World
	BeforeEach(func() {
		upstream = NewUpstream(apiKey)
		world = NewGateway(upstream.URL+"/mcp", func(c *service.Config) {
			c.Scopes = slices.Grow(c.Scopes, 2)[:2]
			c.Scopes[0].Name, c.Scopes[1].Name, c.Scopes[1].Implies = "mcp", "danger", []string{"mcp"}
			c.Gateway.ToolScopes = []service.ToolScope{{Pattern: "delete_*", Scopes: []string{"danger"}}}
		})
	})

	It("asks for the scope before the upstream sees the call, and passes the call of whoever has it", func(ctx SpecContext) {
		plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		Expect(plain.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
		asked := len(upstream.Asked())
		refused := plain.Post(ctx, "tools/call", params{"name": "delete_all", "arguments": params{}})
		Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
		Expect(refused.Header.Get("WWW-Authenticate")).To(And(ContainSubstring(`error="insufficient_scope"`), ContainSubstring(`scope="danger mcp"`)))
		Expect(upstream.Asked()).To(HaveLen(asked))

		wider := world.NewClient().Connect(ctx, func(v url.Values) { v.Set("scope", "danger") })
		Expect(wider.Scope).To(Equal("danger"))
		Expect(world.Converse(ctx, stateless, wider.Access).Use(ctx, "delete_all", params{}).Text()).To(Equal("all gone"))
	})

	It("asks for what the headers name too, because an upstream may go by those", func(ctx SpecContext) {
		plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for _, name := range []string{"delete_all", "=?base64?ZGVsZXRlX2FsbA==?=", "=?base64?ZGVsZXRlX2FsbAA=?="} {
			refused := plain.Post(ctx, "tools/call", params{"name": "shout", "arguments": params{"text": "x"}}, with("Mcp-Name", name))
			Expect(refused.StatusCode).To(Equal(http.StatusForbidden), name)
		}
		second := plain.Post(ctx, "tools/call", params{"name": "shout"}, func(r *http.Request) { r.Header.Add("Mcp-Name", "delete_all") })
		Expect(second.StatusCode).To(Equal(http.StatusForbidden))
		Expect(upstream.Asked()).To(BeEmpty())
	})

	DescribeTable("refuses what the upstream might read in another way:", func(ctx SpecContext, body, contentType string, status int) {
		access := world.NewClient().Connect(ctx).Access
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, world.MCP(), strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer "+access)
		r.Header.Set("Content-Type", contentType)
		Expect(Send(r).StatusCode).To(Equal(status))
		Expect(upstream.Asked()).To(BeEmpty())
	},
		Entry("a tool that is named twice", call(`"name":"shout","name":"delete_all"`), "application/json", 400),
		Entry("a tool in another case", call(`"name":"shout","Name":"delete_all"`), "application/json", 400),
		Entry("a tool with an odd letter", call(`"name":"shout","\u0074ame":1,"NAME":"delete_all"`), "application/json", 400),
		Entry("a method in another case", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"delete_all"}}`, "application/json", 400),
		Entry("params in another case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout"},"Params":{"name":"delete_all"}}`, "application/json", 400),
		Entry("a method that ends early for readers in C", `{"jsonrpc":"2.0","id":1,"method":"tools/call\u0000","params":{"name":"delete_all"}}`, "application/json", 400),
		Entry("a tool that ends early for them", call(`"name":"delete_all\u0000"`), "application/json", 400),
		Entry("a member that ends early for them", `{"jsonrpc":"2.0","id":1,"method\u0000":"tools/call","method":"ping","params":{"name":"delete_all"}}`, "application/json", 400),
		Entry("a method whose word is cut", `{"jsonrpc":"2.0","id":1,"me_thod":"tools/call","params":{"name":"delete_all"}}`, "application/json", 400),
		Entry("a tool whose member is cut", call(`"na-me":"delete_all"`), "application/json", 400),
		Entry("a method to inherit", `{"jsonrpc":"2.0","id":1,"__proto__":{"method":"tools/call","params":{"name":"delete_all"}}}`, "application/json", 400),
		Entry("nesting that many readers refuse", call(`"x":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), "application/json", 400),
		Entry("a long s", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout"},"paramſ":{"name":"delete_all"}}`, "application/json", 400),
		Entry("the second of a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","Params":{"name":"delete_all"}}]`, "application/json", 400),
		Entry("something after the end", call(`"name":"shout"`)+`{}`, "application/json", 400),
		Entry("a byte order mark", "\ufeff"+call(`"name":"delete_all"`), "application/json", 400),
		Entry("another encoding", call(`"name":"shout","x":"+ACI-"`), "application/json; charset=utf-7", 415),
		Entry("another media type", call(`"name":"delete_all"`), "text/plain", 415),
		Entry("no media type", call(`"name":"delete_all"`), "", 415),
		Entry("invalid UTF-8", call("\"name\":\"shout\xff\""), "application/json", 400),
		Entry("a comment", call(`"name":"shout"/*,*/`), "application/json", 400),
		Entry("nothing", "", "application/json", 400),
		Entry("a tool behind what is no _meta", call(`"_meta":5,"name":"delete_all"`), "application/json", 400),
		Entry("a list of one tool", call(`"name":["delete_all"]`), "application/json", 400),
		Entry("a list of one method", `{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"delete_all"}}`, "application/json", 400),
		Entry("a list of parameters", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["delete_all"]}`, "application/json", 400),
		Entry("one of a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},`+call(`"_meta":[],"name":"delete_all"`)+`]`, "application/json", 400),
		Entry("a text", `"tools/call"`, "application/json", 400),
		Entry("a batch of batches", `[[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_all"}}]]`, "application/json", 400),
	)
})
