package features_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// restrictedLibrary is a gateway in front of a server with tools, prompts and resources, of which
// each person may use some.
type restrictedLibrary struct {
	upstream *UpstreamServer
	world    *World
}

func (l *restrictedLibrary) open(ctx context.Context, path string, adjust ...func(*service.Config)) {
	GinkgoHelper()
	l.world = NewGateway(l.upstream.URL+path, append([]func(*service.Config){restricting()}, adjust...)...)
}

func (l *restrictedLibrary) as(ctx context.Context, token, revision string) *Conversation {
	GinkgoHelper()
	l.world.Token = token
	return l.world.Converse(ctx, revision, l.world.NewClient().Connect(ctx).Access)
}

var _ = Describe("Showing only some tools, prompts and resources to some people",
	Label("gateway", "U26", "U27"), func() {
		l := &restrictedLibrary{}
		BeforeEach(func() { l.upstream = NewLibrary() })

		DescribeTable("lists what each person may use, on every page, and refuses the rest ahead of the upstream:",
			func(ctx SpecContext, revision, path string) {
				l.open(ctx, path)
				ada, bob := l.as(ctx, "token-of-ada", revision), l.as(ctx, "token-of-bob", revision)
				lists := func(talk *Conversation) [][]string {
					return [][]string{
						everyPage(ctx, talk, "tools/list", "tools", "name"),
						everyPage(ctx, talk, "prompts/list", "prompts", "name"),
						everyPage(ctx, talk, "resources/list", "resources", "uri"),
						everyPage(ctx, talk, "resources/templates/list", "resourceTemplates", "uriTemplate"),
					}
				}
				Expect(lists(ada)).To(Equal([][]string{
					{"delete_all", "hang", "shout"}, {"draft_letter", "draft_report", "fire_person"},
					{"file:///public/a.txt", "file:///public/b.txt", "file:///secret/pay.txt"},
					{"file:///public/{name}", "file:///secret/{name}"},
				}))
				Expect(lists(bob)).To(Equal([][]string{
					{"hang", "shout"}, {"draft_letter", "draft_report"},
					{"file:///public/a.txt", "file:///public/b.txt"},
					{"file:///public/{name}"},
				}))

				Expect(ada.Use(ctx, "delete_all", params{}).Text()).To(Equal("all gone"))
				Expect(bob.Use(ctx, "shout", params{"text": "x"}).Text()).To(Equal("X"))
				Expect(bob.raw(ctx, "prompts/get", params{"name": "draft_report"})).
					To(ContainSubstring("got draft_report"))
				Expect(bob.Read(ctx, "file:///public/a.txt").Result.Contents).To(HaveLen(1))
				Expect(ada.Read(ctx, "file:///secret/pay.txt").Result.Contents).To(HaveLen(1))

				before := len(l.upstream.Asked())
				noResource := -32002
				if revision == stateless {
					noResource = -32602
				}
				for _, refused := range []struct {
					method string
					params params
					code   int
					text   string
				}{
					{"tools/call", params{"name": "delete_all", "arguments": params{}}, -32602,
						`unknown tool "delete_all"`},
					{"tools/get", params{"name": "delete_all"}, -32602, `unknown tool "delete_all"`},
					{"tools/call", params{"name": "no_such_tool", "arguments": params{}}, -32602,
						`unknown tool "no_such_tool"`},
					{"prompts/get", params{"name": "fire_person"}, -32602, `unknown prompt "fire_person"`},
					{"resources/read", params{"uri": "file:///secret/pay.txt"}, noResource, "Resource not found"},
					{"resources/subscribe", params{"uri": "file:///secret/pay.txt"}, noResource, "Resource not found"},
					{"resources/unsubscribe", params{"uri": "file:///secret/pay.txt"}, noResource,
						"Resource not found"},
					{"completion/complete",
						params{"ref": params{"type": "ref/prompt", "name": "fire_person"},
							"argument": params{"name": "x", "value": "y"}}, -32602, `unknown prompt "fire_person"`},
					{"completion/complete",
						params{"ref": params{"type": "ref/resource", "uri": "file:///secret/{name}"},
							"argument": params{"name": "x", "value": "y"}}, noResource, "Resource not found"},
					{"completion/complete",
						params{"ref": params{"type": "ref/prompt", "name": "draft_report",
							"uri": "file:///secret/{name}"}},
						noResource, "Resource not found"},
					{"subscriptions/listen",
						params{"notifications": params{"resourceSubscriptions": []string{"file:///public/a.txt",
							"file:///secret/pay.txt"}}}, noResource, "Resource not found"},
					{"resources/future", params{"uri": "file:///secret/pay.txt"}, noResource, "Resource not found"},
				} {
					answer := bob.Ask(ctx, refused.method, refused.params)
					Expect(answer.Error.Code).To(Equal(refused.code), refused.method)
					Expect(answer.Error.Message).To(Equal(refused.text), refused.method)
				}
				Expect(l.upstream.Asked()).To(HaveLen(before))
				completed := bob.raw(ctx, "completion/complete",
					params{"ref": params{"type": "ref/prompt", "name": "draft_report"},
						"argument": params{"name": "x", "value": "y"}})
				Expect(completed).To(ContainSubstring("completed"))
			},
			Entry(batching, Label("MCP "+batching), batching, "/mcp"),
			Entry(headers, Label("MCP "+headers), headers, "/mcp"),
			Entry(sessions, Label("MCP "+sessions), sessions, "/mcp"),
			Entry(stateless, Label("MCP "+stateless), stateless, "/mcp"), Entry("answers in JSON", sessions, "/json"),
		)

		It("refuses other spellings of what it denies, and what is only nearly allowed", func(ctx SpecContext) {
			l.open(ctx, "/mcp")
			bob := l.as(ctx, "token-of-bob", stateless)
			for method, names := range map[string][]string{
				"tools/call":  {"DELETE_ALL", " delete_all\u00a0", "\uff44elete_all", "Shout", "shout "},
				"prompts/get": {"Fire_Person", "\u200bfire_person"},
				"resources/read": {"file:///public/../secret/pay.txt", "file:///public/%252e%252e%252fsecret/pay.txt",
					`file:///public/..\secret/pay.txt`, "file:///public/%2e%2e/secret/pay.txt?%",
					"file:///secret/pay.txt?file:///public/"},
			} {
				for _, name := range names {
					p := params{"name": name}
					if method == "resources/read" {
						p = params{"uri": name}
					}
					Expect(bob.Ask(ctx, method, p).Error.Code).To(BeElementOf(-32602, -32020), name)
					inHeader := bob.Post(ctx, method, params{"name": "shout", "uri": "file:///public/a.txt"},
						with("Mcp-Name", "=?base64?"+base64.StdEncoding.EncodeToString([]byte(name))+"?="))
					Expect(inHeader.Text).To(ContainSubstring(`"code":-32020`), name)
				}
			}
			Expect(l.upstream.Asked()).To(BeEmpty())
		})

		It("refuses what servers may take for a denied resource, and passes the rest", func(ctx SpecContext) {
			l.open(ctx, "/mcp", func(c *service.Config) {
				c.Gateway.Policy.Resources = []string{"deny file:///secret/*", "allow *"}
			})
			bob := l.as(ctx, "token-of-bob", sessions)
			before := len(l.upstream.Asked())
			for _, uri := range []string{
				"file:///%73ecret/pay%zz", "file:///secret/pay.txt?", "file:///secret/pay.txt#a",
				"file:secret/pay.txt", "file:/secret/pay.txt", "file:////secret/pay.txt",
				"file://localhost/secret/pay.txt", "file://user@/secret/pay.txt", `file:\secret\pay.txt`,
				"FILE:///secret/pay.txt", "file:///%2573ecret/pay.txt", "file:///./secret/pay.txt",
				"file:///sec\nret/pay.txt", "https://h/ a", "note://a/../b", "url:file:///secret/pay.txt",
				"URL:file:/secret/pay.txt", "url%3Afile:///secret/pay.txt", "jar:file:///secret/pay.txt!/a",
			} {
				Expect(bob.Ask(ctx, "resources/read", params{"uri": uri}).Error.Message).
					To(Equal("Resource not found"), uri)
				Expect(l.upstream.Asked()).To(HaveLen(before), uri)
			}
			Expect(bob.Read(ctx, "file:///public/a.txt").Result.Contents).To(HaveLen(1))
			bob.raw(ctx, "resources/read", params{"uri": "note://a/b?c=1#d"})
			Expect(l.upstream.Asked()).To(HaveLen(before + 2))
		})

		It("refuses a batch", func(ctx SpecContext) {
			l.open(ctx, "/mcp")
			bob := l.as(ctx, "token-of-bob", batching)
			before := len(l.upstream.Asked())
			r := bob.message(ctx, "tools/call", params{})
			batch := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"tools/call",` +
				`"params":{"name":"delete_all"}},{"jsonrpc":"2.0","method":"notifications/initialized"}]`
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(batch)), int64(len(batch))
			refused := Send(r)
			Expect(refused.StatusCode).To(Equal(http.StatusBadRequest))
			Expect(refused.Text).To(ContainSubstring("send no batch"))
			Expect(l.upstream.Asked()).To(HaveLen(before))
		})

		It("refuses a body in which parsers could find different names", func(ctx SpecContext) {
			l.open(ctx, "/mcp")
			bob := l.as(ctx, "token-of-bob", sessions)
			before := len(l.upstream.Asked())
			for _, sent := range [][2]string{
				{"resources/read", `{"uri":"file:///public/a.txt","URI":"file:///secret/pay.txt"}`},
				{"resources/read", `{"uri":["file:///secret/pay.txt"]}`},
				{"completion/complete",
					`{"ref":{"type":"ref/prompt","name":"draft_report"},"Ref":{"name":"fire_person"}}`},
				{"completion/complete",
					`{"ref":{"type":"ref/prompt","name":"draft_report","Name":"fire_person"}}`},
				{"completion/complete", `{"ref":[{"type":"ref/prompt","name":"fire_person"}]}`},
				{"subscriptions/listen", `{"notifications":{"ResourceSubscriptions":["file:///secret/pay.txt"]}}`},
				{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":"file:///secret/pay.txt"}}`},
				{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["file:///secret/pay\ud83d"]}}`},
			} {
				r := bob.message(ctx, sent[0], nil)
				body := `{"jsonrpc":"2.0","id":1,"params":` + sent[1] + `,"method":"` + sent[0] + `"}`
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				refused := Send(r)
				Expect(refused.StatusCode).To(Equal(http.StatusBadRequest), body)
				Expect(refused.Text).To(ContainSubstring("(rule U11)"))
			}
			Expect(l.upstream.Asked()).To(HaveLen(before))
		})

		It("names the rule in the trace, the log and the audit, and the tool in the audit only",
			Label("V1"), func(ctx SpecContext) {
				file, audited := auditing()
				l.open(ctx, "/mcp", audited)
				bob := l.as(ctx, "token-of-bob", stateless)
				bob.Use(ctx, "delete_all", params{})
				line := toolCalls(file, 1)[0]
				Expect(line.Rule).To(Equal("U26"))
				Expect([]string{line.Outcome, line.Name}).To(Equal([]string{"refused", "delete_all"}))
				Expect(line.Subject).To(Equal("bob"))
				Expect(l.world.Log.String()).To(ContainSubstring(`"rule":"U26"`))
				Expect(l.world.Log.String()).NotTo(ContainSubstring("delete_all"))
				Eventually(func() string {
					return fmt.Sprint(l.world.service.Authz.Trace(ctx))
				}).WithTimeout(patience).Should(And(
					ContainSubstring("U26"), ContainSubstring("the caller may not use a tool, prompt or resource"),
					Not(ContainSubstring("delete_all"))))
			})

		It("passes the notice of a changed list, and then shows the new tools", func(ctx SpecContext) {
			l.open(ctx, "/mcp")
			bob := l.as(ctx, "token-of-bob", sessions)
			stream := bob.Listen(ctx)
			Expect(everyPage(ctx, bob, "tools/list", "tools", "name")).To(Equal([]string{"hang", "shout"}))
			for _, name := range []string{"more_tea", "delete_tea"} {
				mcp.AddTool(l.upstream.tools, &mcp.Tool{Name: name},
					func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
						return textual("tea"), nil, nil
					})
			}
			Expect(stream.Next("message")).To(ContainSubstring("notifications/tools/list_changed"))
			Expect(everyPage(ctx, bob, "tools/list", "tools", "name")).To(Equal([]string{"hang", "more_tea", "shout"}))
			Expect(bob.Use(ctx, "more_tea", params{}).Text()).To(Equal("tea"))
		})

		It("still lists a tool whose scope the client lacks, so that the client can request it",
			Label("G10"), func(ctx SpecContext) {
				l.open(ctx, "/mcp", func(c *service.Config) {
					withDanger(c)
					c.Gateway.ToolScopes = []service.ToolScope{{Pattern: "shout", Scopes: []string{"danger"}}}
				})
				bob := l.as(ctx, "token-of-bob", stateless)
				Expect(everyPage(ctx, bob, "tools/list", "tools", "name")).To(ContainElement("shout"))
				Expect(bob.Post(ctx, "tools/call", params{"name": "shout"}).StatusCode).To(Equal(http.StatusForbidden))
			})

		It("decides by the scopes of the grant, also by those that a scope implies", func(ctx SpecContext) {
			l.open(ctx, "/mcp", func(c *service.Config) {
				withDanger(c)
				c.Gateway.Policy = service.PolicyConfig{
					Tools: []string{"allow hang for scope:mcp", "allow delete_* for scope:danger"}}
				c.Verification = people{"token-of-eve": `{"subject":"eve","scopes":["mcp","danger"]}`}.verify()
			})
			l.world.Token = "token-of-eve"
			plain := l.world.Converse(ctx, stateless, l.world.NewClient().Connect(ctx).Access)
			Expect(everyPage(ctx, plain, "tools/list", "tools", "name")).To(Equal([]string{"hang"}))
			wider := l.world.Converse(ctx, stateless, l.world.NewClient().Connect(ctx, func(v url.Values) {
				v.Set("scope", "danger")
			}).Access)
			Expect(everyPage(ctx, wider, "tools/list", "tools", "name")).To(Equal([]string{"delete_all", "hang"}))
		})
	})

var _ = Describe("Filtering answers with rules for tools, prompts and resources",
	Label("gateway", "U26", "U27"), func() {
		l := &restrictedLibrary{}
		BeforeEach(func() { l.upstream = NewLibrary() })

		const hidden = `{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"shout"},{"name":"delete_all"}],` +
			`"ttlMs":60000,"cacheScope":"public"}}`
		const shown = `{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"shout"}],"ttlMs":60000,` +
			`"cacheScope":"private"}}`
		ask := func(ctx context.Context, revision string, answer http.HandlerFunc) Response {
			GinkgoHelper()
			l.open(ctx, "/mcp")
			bob := l.as(ctx, "token-of-bob", revision)
			l.upstream.Answer(answer)
			return bob.Post(ctx, "tools/list", params{})
		}

		It("forbids shared caches to store the filtered answers", func(ctx SpecContext) {
			answer := ask(ctx, stateless, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Etag", `"1"`)
				_, _ = io.WriteString(w, hidden)
			})
			Expect(answer.Text).To(Equal(shown))
			Expect(answer.ContentLength).To(BeEquivalentTo(len(shown)))
			Expect(answer.Header).NotTo(HaveKey("Etag"))
			Expect(l.upstream.Asked()[0].Header.Get("Accept-Encoding")).To(Equal("identity"))
		})

		It("filters answers on another stream too, as after a reconnect, and drops what it cannot read",
			func(ctx SpecContext) {
				l.open(ctx, "/mcp")
				bob := l.as(ctx, "token-of-bob", sessions)
				l.upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w,
						"id: 4\nevent: message\ndata: "+hidden+"}\n\nid: 5\nevent: message\ndata: "+hidden+"\n\n")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				})
				resumed := bob.Request(ctx, http.MethodGet)
				resumed.Header.Set("Last-Event-ID", "4")
				Expect(Follow(resumed).Next("message")).To(Equal(shown))
			})

		It("passes on only those notices about a resource that the person may read", func(ctx SpecContext) {
			l.open(ctx, "/mcp")
			bob := l.as(ctx, "token-of-bob", sessions)
			updated := func(uri string) string {
				return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
			}
			l.upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: "+updated("file:///secret/pay.txt")+"\n\ndata: ["+
					updated("file:///secret/b")+","+updated("file:///public/a.txt")+"]\n\n"+
					"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n")
			})
			Expect(strings.TrimPrefix(Send(bob.Request(ctx, http.MethodGet)).Text, ": ok\n\n")).
				To(Equal("data: [" + updated("file:///public/a.txt") + "]\n\n" +
					"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n"))
		})

		It("passes on every byte without rules", func(ctx SpecContext) {
			l.world = NewGateway(l.upstream.URL + "/mcp")
			talk := l.world.Converse(ctx, stateless, l.world.NewClient().Connect(ctx).Access)
			l.upstream.Answer(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "x-unknown")
				_, _ = io.WriteString(w, hidden+"}")
			})
			answer := talk.Post(ctx, "tools/list", params{}, with("Accept-Encoding", "gzip"))
			Expect(answer.Text).To(Equal(hidden + "}"))
			Expect(l.upstream.Asked()[0].Header.Get("Accept-Encoding")).To(Equal("identity"))
		})
	})

var _ = Describe("A mistake in the rules for tools, prompts and resources",
	Label("gateway", "configuration", "U28"), func() {
		BeforeEach(func() { workingFolder() })

		DescribeTable("is reported at the start with the line, the number of the rule and the remedy:",
			func(ctx SpecContext, setting, rule, remedy string) {
				write("pasteport.yaml", "upstream:\n- http://127.0.0.1:9000/mcp\n"+setting+":\n- deny x*\n- '"+rule+
					"'\n- allow *\n")
				dir := filepath.Join(GinkgoT().TempDir(), "data")
				ran := Run(ctx, "gateway", "--dev", "--addr=127.0.0.1:0", "--data="+dir)
				Expect(ran.Code).To(Equal(1))
				Expect(ran.Err).To(ContainSubstring(setting + " (from pasteport.yaml:3): " + remedy))
				Expect(dir).NotTo(BeADirectory())
			},
			Entry("another word", "tools", "forbid y", "number 2: it does not begin with allow or deny"),
			Entry("a pattern that does not end", "prompts", "deny [y", `number 2: "[y" is not a pattern`),
			Entry("an unknown scope", "tools", "deny y for scope:admin",
				`number 2: "admin" is not a scope of this server: add it to scopes`),
			Entry("a role, although the verifier is the upstream", "tools", "deny y for role:admin",
				`number 2: "role:admin" is a role, but the verifier names no roles`),
			Entry("a rule before one without effect", "tools", "allow *", "number 3: it has no effect"),
		)
	})
