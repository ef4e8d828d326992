package features_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

const signingSecret = "signing-secret-of-the-specs-32-bytes"

// signedBy checks an HTTP message signature (RFC 9421) as an upstream does.
func signedBy(secret string, r *http.Request) bool {
	GinkgoHelper()
	parameters, found := strings.CutPrefix(r.Header.Get("Signature-Input"), "pasteport=")
	Expect(found).To(BeTrue(), "the request is signed")
	listed, _, _ := strings.Cut(strings.TrimPrefix(parameters, "("), ")")
	var base strings.Builder
	for _, quoted := range strings.Fields(listed) {
		name := strings.Trim(quoted, `"`)
		value := r.Header.Get(name)
		if name == "@method" {
			value = r.Method
		}
		base.WriteString(quoted + ": " + value + "\n")
	}
	base.WriteString(`"@signature-params": ` + parameters)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, base.String())
	return r.Header.Get("Signature") == "pasteport=:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))+":"
}

// static returns a gateway with one shared key for its upstream.
func static(verification service.Verification) func(*service.Config) {
	return func(c *service.Config) {
		c.Gateway.Credential, c.Gateway.Secret, c.Gateway.SigningSecret = bootstrap.CredentialStatic, apiKey,
			signingSecret
		c.Verification = verification
	}
}

var _ = Describe("Telling an upstream who is calling", Label("gateway", "RFC 9421", "U7"), func() {
	const personal = "token-of-ada"
	var upstream *UpstreamServer
	var world *World
	BeforeEach(func(ctx SpecContext) {
		upstream = NewUpstream(apiKey)
		world = NewGateway(upstream.URL+"/mcp", static(ada(personal)))
		world.Token = personal
	})

	It("sends the caller in signed headers that no client can set, and not the person's token",
		Label("U5", "J13"), func(ctx SpecContext) {
			client := world.NewClient()
			talk := world.Converse(ctx, stateless, client.Connect(ctx).Access)
			forged := func(r *http.Request) {
				for _, name := range []string{"X-Pasteport-Subject", "X-Pasteport-Roles", "X-Pasteport-Admin"} {
					r.Header.Set(name, "root")
				}
			}
			Expect(talk.Post(ctx, "tools/list", params{}, forged).StatusCode).To(Equal(http.StatusOK))
			asked := upstream.Asked()[0]
			said := map[string]string{}
			for name := range asked.Header {
				if strings.HasPrefix(name, "X-Pasteport-") {
					said[name] = must(url.PathUnescape(asked.Header.Get(name)))
				}
			}
			Expect(said).To(And(
				HaveLen(5), HaveKeyWithValue("X-Pasteport-Subject", "Adá,"),
				HaveKeyWithValue("X-Pasteport-Client", client.ID),
				HaveKeyWithValue("X-Pasteport-Resource", world.MCP()), HaveKey("X-Pasteport-Grant"),
				HaveKey("X-Pasteport-Roles"),
			))
			Expect(asked.Header.Get("X-Pasteport-Roles")).To(Equal("editor,caf%C3%A9%2Ctea"))
			Expect(asked.Header.Get("Authorization")).To(Equal("Bearer " + apiKey))
			Expect(signedBy(signingSecret, asked)).To(BeTrue())
			Expect(upstream.Wire()).
				NotTo(Or(ContainSubstring(personal), ContainSubstring(signingSecret), ContainSubstring("root")))
		})

	It("signs the request so that a change is detected", func(ctx SpecContext) {
		world.Call(ctx, world.NewClient().Connect(ctx).Access)
		asked := upstream.Asked()[0]
		sum := sha256.Sum256(must(io.ReadAll(asked.Body)))
		Expect(asked.Header.Get("Content-Digest")).
			To(Equal("sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"))
		Expect(asked.Header.Get("Signature-Input")).
			To(MatchRegexp(`;created=\d{10};keyid="pasteport";alg="hmac-sha256"$`))
		later := strings.Replace(asked.Header.Get("Signature-Input"), "created=1", "created=2", 1)
		for i, spoil := range []func(*http.Request){
			with("X-Pasteport-Subject", "eve"), with("X-Pasteport-Roles", "root"), with("X-Pasteport-Client", "x"),
			with("X-Pasteport-Grant", "x"), with("X-Pasteport-Resource", "x"), with("Content-Digest", "sha-256=:x:"),
			func(r *http.Request) { r.Method = http.MethodDelete }, with("Signature-Input", later),
		} {
			spoiled := asked.Clone(ctx)
			spoil(spoiled)
			Expect(signedBy(signingSecret, spoiled)).To(BeFalse(), "%d", i)
		}
	})
})

var _ = Describe("A gateway to several MCP servers", Label("gateway", "U1"), func() {
	const otherKey = "key-of-the-other"
	var first, second *UpstreamServer
	var world *World
	BeforeEach(func() {
		first, second = NewUpstream(apiKey), NewUpstream(otherKey)
		world = NewGateway(first.URL+"/mcp", func(c *service.Config) {
			c.Gateway.Upstreams = append(c.Gateway.Upstreams, serverAt("/files", second.URL+"/mcp"))
		})
	})
	files := func(form url.Values) { form.Set("resource", world.Issuer+"/files") }

	// at lists the tools of the server at the path.
	at := func(ctx SpecContext, path, access string) Response {
		GinkgoHelper()
		talk := &Conversation{
			World:    world,
			Revision: stateless,
			Access:   access,
			target:   world.Issuer + path,
		}
		return talk.Post(ctx, "tools/list", params{})
	}

	It("keeps the tokens and keys of the servers apart", Label("U3", "U6", "G8"), func(ctx SpecContext) {
		mine := world.NewClient().Connect(ctx).Access
		world.Token = otherKey
		client := world.NewClient()
		code := client.Authorize(ctx, files)
		form := client.Exchange(code)
		files(form)
		theirs := client.Token(ctx, form).Tokens().Access
		Expect(at(ctx, "/mcp", mine).StatusCode).To(Equal(http.StatusOK))
		Expect(at(ctx, "/files", theirs).StatusCode).To(Equal(http.StatusOK))
		Expect(at(ctx, "/mcp", theirs)).To(BeChallenged(world, "invalid_token"))
		refused := at(ctx, "/files", mine)
		Expect(refused.StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(refused.Header.Get("WWW-Authenticate")).
			To(ContainSubstring(world.Issuer + `/.well-known/oauth-protected-resource/files"`))
		Expect(first.Wire()).To(And(ContainSubstring(apiKey), Not(ContainSubstring(otherKey))))
		Expect(second.Wire()).To(And(ContainSubstring(otherKey), Not(ContainSubstring(apiKey))))
	})

	It("verifies a key only with its own server", Label("U3"), func(ctx SpecContext) {
		client := world.NewClient()
		Expect(client.Consent(ctx, files).Approve(ctx, apiKey)).To(BeAPage(http.StatusForbidden, ""))
		world.Token = apiKey
		Expect(client.Authorize(ctx)).NotTo(BeEmpty())
	})

	It("serves metadata for each path, and lists the URLs at the root", Label("F6", "U1"), func(ctx SpecContext) {
		for path, resource := range map[string]string{"/mcp": "/mcp", "/files": "/files", "": "/mcp"} {
			document := Get(ctx, world.Issuer+"/.well-known/oauth-protected-resource"+path)
			Expect(document.Text).To(ContainSubstring(`"resource":"` + world.Issuer + resource + `"`))
		}
		Expect(Get(ctx, world.Issuer+"/").Text).
			To(And(ContainSubstring(world.Issuer+"/mcp<"), ContainSubstring(world.Issuer+"/files<")))
	})
})

var _ = Describe("Keeping the sessions of an upstream apart", Label("gateway", "U12"), func() {
	var upstream *UpstreamServer
	BeforeEach(func() { upstream = NewUpstream(apiKey) })

	It("refuses the session of another owner without asking the upstream, also after a restart", func(ctx SpecContext) {
		world := NewGateway(upstream.URL + "/mcp")
		mine := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		theirs := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		asked := len(upstream.Asked())
		for _, session := range []string{theirs.session, mine.session + "x", "x" + mine.session,
			strings.TrimRight(mine.session, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"), "",
			"."} {
			answer := mine.Post(ctx, "tools/list", params{}, with("Mcp-Session-Id", session))
			Expect(answer.StatusCode).To(Equal(http.StatusNotFound), session)
			Expect(answer.Text).To(ContainSubstring("the session does not exist"))
		}
		twice := mine.Post(ctx, "tools/list", params{}, func(r *http.Request) {
			r.Header.Add("Mcp-Session-Id", theirs.session)
		})
		Expect(twice.StatusCode).To(Equal(http.StatusNotFound))
		Expect(upstream.Asked()).To(HaveLen(asked))
		world.Restart()
		Expect(mine.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3))
		Expect(Send(mine.Request(ctx, http.MethodDelete)).StatusCode).To(Equal(http.StatusNoContent))
		Expect(mine.Post(ctx, "tools/list", params{}).StatusCode).
			To(Equal(http.StatusNotFound), "the upstream's own response")
	})

	It("allows a session for a later grant of the same client and key, as after a step-up, but not for other keys",
		Label("G14"), func(ctx SpecContext) {
			upstream := NewUpstream(apiKey, "another-key")
			world := NewGateway(upstream.URL + "/mcp")
			client := world.NewClient()
			mine := world.Converse(ctx, sessions, client.Connect(ctx).Access)
			mine.Access = client.Connect(ctx).Access
			Expect(mine.Ask(ctx, "tools/list", params{}).Tools()).To(HaveLen(3))
			world.Token = "another-key"
			mine.Access = client.Connect(ctx).Access
			Expect(mine.Post(ctx, "tools/list", params{}).StatusCode).To(Equal(http.StatusNotFound))
		})
})

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

	It("refuses headers that name another tool or method, because an upstream may read those", func(ctx SpecContext) {
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
			r := must(http.NewRequestWithContext(ctx, http.MethodPost, world.MCP(), strings.NewReader(body)))
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
