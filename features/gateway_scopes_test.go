package features_test

import (
	"io"
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

var _ = Describe("Requiring scopes for tools of an upstream", Label("gateway", "U11", "G10"), func() {
	var upstream *UpstreamServer
	var world *World
	BeforeEach(func() {
		upstream = NewUpstream(apiKey)
		world = NewGateway(upstream.URL+"/mcp", func(c *service.Config) {
			c.Scopes = slices.Grow(c.Scopes, 2)[:2]
			c.Scopes[0].Name, c.Scopes[1].Name, c.Scopes[1].Implies = "mcp", "danger", []string{"mcp"}
			c.Gateway.ToolScopes = []service.ToolScope{{Pattern: "delete_*", Scopes: []string{"danger"}},
				{Pattern: "Wipe_Dis[Kk]", Scopes: []string{"danger"}}}
		})
	})

	It("refuses a call without the scope before the upstream gets it, and forwards a call with the scope",
		func(ctx SpecContext) {
			plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			Expect(plain.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
			asked := len(upstream.Asked())
			refused := plain.Post(ctx, "tools/call", params{"name": "delete_all", "arguments": params{}})
			Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
			Expect(refused.Header.Get("WWW-Authenticate")).
				To(And(ContainSubstring(`error="insufficient_scope"`), ContainSubstring(`scope="danger mcp"`)))
			Expect(upstream.Asked()).To(HaveLen(asked))
			Expect(world.Log.String()).To(MatchRegexp(`"msg":"refused a request","grant":"\w+",` +
				`"client":"https?://[^"]+",.*"rule":"G10","needed":"danger mcp"`))
			Expect(world.Call(ctx, "not a token 68").StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(strings.Count(world.Log.String(), `"msg":"refused a request"`)).
				To(Equal(1), "a request without a grant is not logged as one that was refused")

			wider := world.NewClient().Connect(ctx, func(v url.Values) { v.Set("scope", "danger") })
			Expect(wider.Scope).To(Equal("danger"))
			Expect(world.Converse(ctx, stateless, wider.Access).Use(ctx, "delete_all", params{}).Text()).
				To(Equal("all gone"))
		})

	It("refuses headers that name another tool or method, because an upstream may read those",
		func(ctx SpecContext) {
			plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			refuse := func(adjust ...func(*http.Request)) {
				GinkgoHelper()
				refused := plain.Post(ctx, "tools/call", params{"name": "shout", "arguments": params{"text": "x"}},
					adjust...)
				Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
				Expect(refused.Text).To(ContainSubstring(`"id":7,"error":{"code":-32020`))
			}
			for _, name := range []string{"delete_all", "=?base64?ZGVsZXRlX2FsbA==?=", "=?base64?ZGVsZXRlX2FsbAA=?=",
				"=?base64?ZGVsZXRl X2FsbA==?=", "=?base64?ZGVsZXRlX2FsbA?=", "=?BASE64?ZGVsZXRlX2FsbA==?=", "SHOUT"} {
				refuse(with("Mcp-Name", name))
			}
			for _, method := range []string{"tools/call, tools/call", "=?base64?dG9vbHMvY2FsbA==?=", "ping, tools/call",
				"", "ping", "TOOLS/CALL", "tools/ call"} {
				refuse(with("Mcp-Method", method))
			}
			refuse(func(r *http.Request) { r.Header.Add("Mcp-Name", "delete_all") })
			Expect(upstream.Asked()).To(BeEmpty())
		})

	It("also requires it for other methods that name a tool", func(ctx SpecContext) {
		plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for _, method := range []string{"tools/get", "tools/future", "tools/list", "TOOLS/CALL"} {
			Expect(plain.Post(ctx, method, params{"name": "delete_all"}, func(r *http.Request) {
				r.Header.Del("Mcp-Name")
			}).StatusCode).To(Equal(http.StatusForbidden), method)
		}
		Expect(upstream.Asked()).To(BeEmpty())
		Expect(plain.Post(ctx, "tasks/get", params{"taskId": "delete_all"}, with("Mcp-Name", "delete_all")).StatusCode).
			NotTo(Equal(http.StatusForbidden), "the name of a task")
		Expect(upstream.Asked()).To(HaveLen(1))
		Expect(upstream.Asked()[0].Header.Get("Mcp-Name")).To(Equal("delete_all"))
		Expect(plain.Post(ctx, "tasks/get", params{"taskId": "a"}, with("Mcp-Name", "b")).StatusCode).
			To(Equal(http.StatusBadRequest))
	})

	It("requires the scope of a tool in another case too", func(ctx SpecContext) {
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		wider := world.NewClient().Connect(ctx, func(v url.Values) { v.Set("scope", "danger") })
		for i, name := range []string{"DELETE_ALL", "delete_All", "Wipe_disk"} {
			refused := talk.Post(ctx, "tools/call", params{"name": name})
			Expect(refused.StatusCode).To(Equal(http.StatusForbidden), name)
			Expect(refused.Header.Get("WWW-Authenticate")).To(ContainSubstring(`scope="danger mcp"`), name)
			Expect(upstream.Asked()).To(HaveLen(i))
			passed := world.Converse(ctx, stateless, wider.Access).Post(ctx, "tools/call", params{"name": name})
			Expect(
				passed.StatusCode,
			).NotTo(Equal(http.StatusForbidden), "with the scope, the gateway forwards the call")
			Expect(upstream.Asked()).To(HaveLen(i + 1))
		}
	})

	It("knows no tool whose name an upstream may treat as another one, and refuses a batch", func(ctx SpecContext) {
		talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for _, name := range []string{"delete_all ", "delete_all\ufeff", "delete_all\x00", "Wipe_dis\u212a",
			"\uff44elete_all", "shout" + strings.Repeat("a", 124)} {
			unknown := talk.Post(ctx, "tools/call", params{"name": name}, func(r *http.Request) {
				r.Header.Del("Mcp-Name")
			})
			Expect(unknown.Text).To(ContainSubstring(`"code":-32602,"message":"unknown tool`))
		}
		r := talk.message(ctx, "ping", params{})
		batch := "[" + call(`"name":"shout"`) + "," + call(`"name":"delete_all "`) + "]"
		r.Header.Del("MCP-Protocol-Version")
		r.Header.Del("Mcp-Method")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(batch)), int64(len(batch))
		Expect(Send(r).Text).To(ContainSubstring("send no batch"))
		Expect(upstream.Asked()).To(BeEmpty())
	})

	It("requires no other scope for exact names", func(ctx SpecContext) {
		plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for _, name := range []string{"shout", "Shout", "undelete_all", "delete-all"} {
			passed := plain.Post(ctx, "tools/call", params{"name": name}, func(r *http.Request) {
				r.Header.Del("Mcp-Name")
			})
			Expect(passed.StatusCode).NotTo(Equal(http.StatusForbidden), name)
		}
	})

	It("refuses a method that an upstream may treat as a method of MCP", func(ctx SpecContext) {
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		before := len(upstream.Asked())
		for _, method := range []string{" tools/call", "tools/call\n", "\uff54ools\uff0fcall", "tool\u017f/call",
			"tools/call\x00"} {
			refused := talk.Post(ctx, method, params{"name": "delete_all"})
			Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(refused.Text).To(ContainSubstring(notMethod))
		}
		Expect(upstream.Asked()).To(HaveLen(before))
	})

	It("forwards methods outside MCP unchanged", func(ctx SpecContext) {
		plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for _, method := range []string{"Example/Method", "x/tools/call", "tools/calls"} {
			before := len(upstream.Asked())
			plain.Post(ctx, method, params{})
			Expect(upstream.Asked()).To(HaveLen(before+1), method)
		}
	})

	It("refuses a body that an upstream may read differently", func(ctx SpecContext) {
		post := func(access, body, contentType string) int {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, world.MCP(), strings.NewReader(body))
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("Authorization", "Bearer "+access)
			r.Header.Set("Content-Type", contentType)
			return Send(r).StatusCode
		}
		access := world.NewClient().Connect(ctx).Access
		for _, body := range []string{
			call(`"name":"shout","name":"delete_all"`), call(`"name":"shout","Name":"delete_all"`),
			call(`"name":"shout","\u0074ame":1,"NAME":"delete_all"`), call(`"name":"shout","Arguments":{}`),
			`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"delete_all"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout"},"paramſ":{"name":"delete_all"}}`,
			`{"jsonrpc":"2.0","id":1,"__proto__":{"method":"tools/call","params":{"name":"delete_all"}}}`,
			`[{"jsonrpc":"2.0","id":1,"method":"ping"},` + call(`"_meta":[],"name":"delete_all"`) + `]`,
			call(`"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), call(`"name":"shout"`) + `{}`,
			call(`"name":"shout"/*,*/`), "", call(`"_meta":5,"name":"delete_all"`), call(`"name":["delete_all"]`),
		} {
			Expect(post(access, body, "application/json")).To(Equal(http.StatusBadRequest), body)
		}
		for _, contentType := range []string{"application/json; charset=utf-7", "text/plain", ""} {
			Expect(post(access, call(`"name":"shout"`), contentType)).To(Equal(http.StatusUnsupportedMediaType))
		}
		Expect(upstream.Asked()).To(BeEmpty())
	})
})
