package features_test

import (
	"encoding/base64"
	"encoding/json"
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

	It("also requires the scope of the tool named in the headers, because an upstream may read those",
		func(ctx SpecContext) {
			plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			for _, name := range []string{"delete_all", "=?base64?ZGVsZXRlX2FsbA==?=", "=?base64?ZGVsZXRlX2FsbAA=?="} {
				refused := plain.Post(ctx, "tools/call", params{"name": "shout", "arguments": params{"text": "x"}},
					with("Mcp-Name", name))
				Expect(refused.StatusCode).To(Equal(http.StatusForbidden), name)
			}
			for _, method := range []string{"tools/call, tools/call", "=?base64?dG9vbHMvY2FsbA==?=",
				"ping, tools/call"} {
				refused := plain.Post(ctx, "tools/call", params{"name": "shout", "arguments": params{"text": "x"}},
					with("Mcp-Method", method), with("Mcp-Name", "delete_all"))
				Expect(refused.StatusCode).To(Equal(http.StatusForbidden), method)
			}
			for _, method := range []string{"", "ping", "tasks/get"} {
				refused := plain.Post(ctx, "tools/call", params{"name": "shout"}, with("Mcp-Method", method),
					with("Mcp-Name", "delete_all"))
				Expect(refused.StatusCode).To(Equal(http.StatusForbidden), "beside the method %q", method)
			}
			second := plain.Post(ctx, "tools/call", params{"name": "shout"}, func(r *http.Request) {
				r.Header.Add("Mcp-Name", "delete_all")
			})
			Expect(second.StatusCode).To(Equal(http.StatusForbidden))
			Expect(upstream.Asked()).To(BeEmpty())
		})

	It("also requires it for other methods that name a tool", func(ctx SpecContext) {
		plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for _, method := range []string{"tools/get", "tools/future", "tools/list"} {
			Expect(plain.Post(ctx, method, params{"name": "delete_all"}, func(r *http.Request) {
				r.Header.Del("Mcp-Name")
			}).StatusCode).To(Equal(http.StatusForbidden), method)
		}
		Expect(upstream.Asked()).To(BeEmpty())
		Expect(plain.Post(ctx, "tasks/get", params{"taskId": "delete_all"}, with("Mcp-Name", "delete_all")).StatusCode).
			NotTo(Equal(http.StatusForbidden), "the name of a task")
		Expect(upstream.Asked()).To(HaveLen(1))
	})

	DescribeTable("requires the scope of a tool for spellings that an upstream may treat as its name:",
		func(ctx SpecContext, name string) {
			talk := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			inBody := talk.Post(ctx, "tools/call", params{"name": name}, func(r *http.Request) {
				r.Header.Del("Mcp-Name")
			})
			encoded := "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
			inHeader := talk.Post(ctx, "tools/call", params{"name": "shout"}, with("Mcp-Name", encoded))
			r := talk.message(ctx, "tools/call", params{"name": "shout"})
			quoted, err := json.Marshal(name)
			Expect(err).NotTo(HaveOccurred())
			batch := "[" + call(`"name":"shout"`) + "," + call(`"name":`+string(quoted)) + "]"
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(batch)), int64(len(batch))
			for where, refused := range map[string]Response{"in the body": inBody, "in a header": inHeader,
				"in a batch": Send(r)} {
				Expect(refused.StatusCode).To(Equal(http.StatusForbidden), where)
				Expect(refused.Header.Get("WWW-Authenticate")).To(ContainSubstring(`scope="danger mcp"`), where)
			}
			Expect(upstream.Asked()).To(BeEmpty())

			wider := world.NewClient().Connect(ctx, func(v url.Values) { v.Set("scope", "danger") })
			passed := world.Converse(ctx, stateless, wider.Access).
				Post(ctx, "tools/call", params{"name": name}, with("Mcp-Name", encoded))
			Expect(passed.StatusCode).
				NotTo(Equal(http.StatusForbidden), "with the scope, the gateway forwards the call")
			Expect(upstream.Asked()).To(HaveLen(1))
		},
		Entry("a trailing space", "delete_all "),
		Entry("a leading space", " delete_all"),
		Entry("a tab and a line break", "\tdelete_all\r\n"),
		Entry("a no-break space", "\u00a0delete_all"),
		Entry("a byte order mark, which JavaScript trims", "delete_all\ufeff"),
		Entry("a separator, which Python strips", "\x1cdelete_all"),
		Entry("a zero-width space", "\u200bdelete_all"),
		Entry("capitals", "DELETE_ALL"),
		Entry("one capital", "delete_All"),
		Entry("a Kelvin sign and the capitals of a pattern", "Wipe_dis\u212a"),
		Entry("full-width letters", "\uff44elete_all"),
		Entry("a ligature", "delete_\ufb01les"),
		Entry("all at once", " \uff24ELETE_All\u00a0"),
	)

	It("requires no other scope for exact names", func(ctx SpecContext) {
		plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for _, name := range []string{"shout", "Shout ", "undelete_all", "delete-all", "крик"} {
			passed := plain.Post(ctx, "tools/call", params{"name": name}, func(r *http.Request) {
				r.Header.Del("Mcp-Name")
			})
			Expect(passed.StatusCode).NotTo(Equal(http.StatusForbidden), name)
		}
	})

	DescribeTable("refuses a method that an upstream may treat as a method of MCP:",
		func(ctx SpecContext, method, exact string) {
			access := world.NewClient().Connect(ctx).Access
			quoted, err := json.Marshal(method)
			Expect(err).NotTo(HaveOccurred())
			message := `{"jsonrpc":"2.0","id":1,"method":` + string(quoted) + `,"params":{"name":"delete_all"}}`
			for _, body := range []string{message, "[" + call(`"name":"shout"`) + "," + message + "]"} {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, world.MCP(), strings.NewReader(body))
				Expect(err).NotTo(HaveOccurred())
				r.Header.Set("Authorization", "Bearer "+access)
				r.Header.Set("Content-Type", "application/json")
				refused := Send(r)
				Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
				Expect(refused.Text).To(ContainSubstring("method is another spelling of " + exact))
			}
			Expect(upstream.Asked()).To(BeEmpty())
		},
		Entry("a leading space", " tools/call", "tools/call"),
		Entry("a trailing space", "tools/call ", "tools/call"),
		Entry("a space in the middle", "tools / call", "tools/call"),
		Entry("capitals", "TOOLS/CALL", "tools/call"),
		Entry("a line break", "tools/call\n", "tools/call"),
		Entry("full-width letters", "\uff54ools\uff0fcall", "tools/call"),
		Entry("a long s", "tool\u017f/call", "tools/call"),
		Entry("a missing capital", "sampling/createmessage", "sampling/createMessage"),
		Entry("a notification", "Notifications/Cancelled", "notifications/cancelled"),
		Entry("initialize", "Initialize", "initialize"),
	)

	DescribeTable("refuses headers that an upstream may read differently:",
		func(ctx SpecContext, header, value, text string) {
			plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
			refused := plain.Post(ctx, "tools/call", params{"name": "shout", "arguments": params{}},
				with(header, value))
			Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(refused.Text).To(And(ContainSubstring(text), ContainSubstring(`"id":7`)))
			Expect(upstream.Asked()).To(BeEmpty())
		},
		Entry("a method in capitals", "Mcp-Method", "TOOLS/CALL", "Mcp-Method is another spelling of tools/call"),
		Entry("a method with a space", "Mcp-Method", "tools/ call", "Mcp-Method is another spelling of tools/call"),
		Entry("base64 with a space, which some decoders skip", "Mcp-Name", "=?base64?ZGVsZXRl X2FsbA==?=",
			"Mcp-Name is not valid base64"),
		Entry("base64 without its padding", "Mcp-Name", "=?base64?ZGVsZXRlX2FsbA?=", "Mcp-Name is not valid base64"),
		Entry("base64 in capitals", "Mcp-Name", "=?BASE64?ZGVsZXRlX2FsbA==?=", "Mcp-Name is not valid base64"),
	)

	It("forwards methods outside MCP unchanged", func(ctx SpecContext) {
		plain := world.Converse(ctx, stateless, world.NewClient().Connect(ctx).Access)
		for _, method := range []string{"Example/Method", "x/tools/call", "tools/calls"} {
			before := len(upstream.Asked())
			plain.Post(ctx, method, params{})
			Expect(upstream.Asked()).To(HaveLen(before+1), method)
		}
	})

	DescribeTable("refuses a body that an upstream may read differently:",
		func(ctx SpecContext, body, contentType string, status int) {
			access := world.NewClient().Connect(ctx).Access
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, world.MCP(), strings.NewReader(body))
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("Authorization", "Bearer "+access)
			r.Header.Set("Content-Type", contentType)
			Expect(Send(r).StatusCode).To(Equal(status))
			Expect(upstream.Asked()).To(BeEmpty())
		},
		Entry("a duplicate tool name", call(`"name":"shout","name":"delete_all"`), "application/json", 400),
		Entry("a tool name under Name", call(`"name":"shout","Name":"delete_all"`), "application/json", 400),
		Entry("a tool name under an escaped member name", call(`"name":"shout","\u0074ame":1,"NAME":"delete_all"`),
			"application/json", 400),
		Entry("arguments under Arguments", call(`"name":"shout","Arguments":{}`), "application/json", 400),
		Entry("a method under Method",
			`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"delete_all"}}`,
			"application/json", 400),
		Entry("params under Params",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout"},"Params":{"name":"delete_all"}}`,
			"application/json", 400),
		Entry("a method with a NUL, at which C parsers stop",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call\u0000","params":{"name":"delete_all"}}`,
			"application/json", 400),
		Entry("a tool name with a NUL", call(`"name":"delete_all\u0000"`), "application/json", 400),
		Entry("a member name with a NUL",
			`{"jsonrpc":"2.0","id":1,"method\u0000":"tools/call","method":"ping","params":{"name":"delete_all"}}`,
			"application/json", 400),
		Entry("a method under me_thod",
			`{"jsonrpc":"2.0","id":1,"me_thod":"tools/call","params":{"name":"delete_all"}}`, "application/json", 400),
		Entry("a tool name under na-me", call(`"na-me":"delete_all"`), "application/json", 400),
		Entry("a method under __proto__",
			`{"jsonrpc":"2.0","id":1,"__proto__":{"method":"tools/call","params":{"name":"delete_all"}}}`,
			"application/json", 400),
		Entry("deep nesting, which many parsers refuse",
			call(`"x":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), "application/json", 400),
		Entry("a long s",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout"},"paramſ":{"name":"delete_all"}}`,
			"application/json", 400),
		Entry("the second message of a batch",
			`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","Params":{`+
				`"name":"delete_all"}}]`, "application/json", 400),
		Entry("data after the message", call(`"name":"shout"`)+`{}`, "application/json", 400),
		Entry("a byte order mark", "\ufeff"+call(`"name":"delete_all"`), "application/json", 400),
		Entry("another encoding", call(`"name":"shout","x":"+ACI-"`), "application/json; charset=utf-7", 415),
		Entry("another media type", call(`"name":"delete_all"`), "text/plain", 415),
		Entry("no media type", call(`"name":"delete_all"`), "", 415),
		Entry("invalid UTF-8", call("\"name\":\"shout\xff\""), "application/json", 400),
		Entry("a comment", call(`"name":"shout"/*,*/`), "application/json", 400),
		Entry("an empty body", "", "application/json", 400),
		Entry("a _meta that is a number", call(`"_meta":5,"name":"delete_all"`), "application/json", 400),
		Entry("a list of one tool", call(`"name":["delete_all"]`), "application/json", 400),
		Entry("a list of one method", `{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"delete_all"}}`,
			"application/json", 400),
		Entry("a list of parameters", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["delete_all"]}`,
			"application/json", 400),
		Entry("a _meta that is a list, in a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},`+
			call(`"_meta":[],"name":"delete_all"`)+`]`, "application/json", 400),
		Entry("a text", `"tools/call"`, "application/json", 400),
		Entry("a batch of batches", `[[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_all"}}]]`,
			"application/json", 400),
	)
})
