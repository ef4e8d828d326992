package bootstrap_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
)

// guarding puts a handler in the place of the MCP server. The result sends messages with a token.
func (h *host) guarding(serve bootstrap.Handler,
	options ...bootstrap.MCPOption) func(string) *httptest.ResponseRecorder {
	GinkgoHelper()
	h.Echo = echo.New()
	Expect(bootstrap.Guard(serve, append(options, bootstrap.WithOAuth(h.authz))...).Register(h.Echo)).To(Succeed())
	access := tokensOf(h.exchange(h.code())).Access
	return func(message string) *httptest.ResponseRecorder { return h.send(access, message) }
}

var _ = Describe("Guarding an MCP server without the SDK", func() {
	const issuer = "https://cms.example"
	const own = issuer + "/own/mcp"
	var (
		server *host
		access string
		seen   []string
	)
	BeforeEach(func() {
		config := oauth.Config{Issuer: issuer, Verifier: newFakeVerifier(),
			MoreServers: []oauth.ProtectedServer{{Resource: own, Name: "Own"}}}
		server, seen = openHost(config, openStore(), nil), nil
		guarded := bootstrap.Guard(func(w http.ResponseWriter, r *http.Request, caller oauth.Caller) {
			body, err := io.ReadAll(r.Body)
			Expect(err).NotTo(HaveOccurred())
			seen = append(seen, caller.Subject, r.Header.Get("Authorization"), string(body))
			w.WriteHeader(http.StatusAccepted)
		}, bootstrap.WithOAuth(server.authz), bootstrap.WithResource(own))
		Expect(guarded.Register(server.Echo)).To(Succeed())
		access = tokensOf(server.exchange(server.code(resource(own)), resource(own))).Access
	})

	It("passes the caller and the message, but no token", Label("G14"), func() {
		Expect(server.sendTo(own, access, initialize).Code).To(Equal(http.StatusAccepted))
		Expect(seen).To(Equal([]string{"ada", "", initialize}))
	})

	It("records each call in the recorder of WithAudit", Label("V1"), func() {
		var calls []audit.Call
		send := server.guarding(func(w http.ResponseWriter, _ *http.Request, _ oauth.Caller) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"isError":true}}`)
		}, bootstrap.WithAudit(func(_ context.Context, call audit.Call) {
			calls = append(calls, call)
		}))
		send(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b" : 1}}}`)
		Expect(calls).To(
			ConsistOf(And(HaveField("Subject", "ada"), HaveField("Name", "a"), HaveField("Outcome", audit.ToolFailed),
				HaveField("Status", 200),
				HaveField("Arguments", []byte(`{"b":1}`)), HaveField("Resource", issuer+"/mcp"),
				HaveField("Request", Not(BeEmpty())))))
	})

	It("refuses and hides what the policies of the host deny", Label("U26", "U27"), func() {
		answered := 0
		open := func(_ oauth.Caller, name string) bool { return strings.ToLower(name) == "open" }
		send := server.guarding(func(w http.ResponseWriter, r *http.Request, _ oauth.Caller) {
			answered++
			_, _ = io.WriteString(w,
				`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"},{"name":"open"}],"prompts":[{`+
					`"name":"secret"}],"resources":[{"uri":"secret"}]}}`)
		}, bootstrap.WithToolPolicy(open), bootstrap.WithPromptPolicy(open),
			bootstrap.WithResourcePolicy(open))
		Expect(send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Body.String()).To(
			Equal(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"open"}],"prompts":[],"resources":[]}}`))
		for _, message := range []string{`"tools/call","params":{"name":"secret"}`,
			`"prompts/get","params":{"name":"secret"}`, `"resources/read","params":{"uri":"secret"}`} {
			Expect(send(`{"jsonrpc":"2.0","id":1,"method":` + message + `}`).Body.String()).
				To(ContainSubstring(`"error"`))
		}
		Expect(answered).To(Equal(1))
	})

	It("leaves no URI to the policy of the host that parsers read differently", Label("U26"), func() {
		var passed []string
		send := server.guarding(func(w http.ResponseWriter, r *http.Request, _ oauth.Caller) {
			body, _ := io.ReadAll(r.Body)
			passed = append(passed, string(body))
		}, bootstrap.WithResourcePolicy(func(_ oauth.Caller, uri string) bool {
			return bootstrap.FoldResourceURI(uri) != "file:///secret"
		}))
		read := func(uri string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + uri + `"}}`
		}
		for _, uri := range []string{"file:///a/../secret", "file:///%2573ecret", "file:///SECRET?x",
			"file:///open?x"} {
			send(read(uri))
		}
		Expect(passed).To(Equal([]string{read("file:///open?x")}))
	})

	It("needs a handler, and does not serve stdio", func(ctx SpecContext) {
		Expect(bootstrap.Guard(nil).Register(server.Echo)).To(MatchError(ContainSubstring("the MCP server is nil")))
		guarded := bootstrap.Guard(func(http.ResponseWriter, *http.Request, oauth.Caller) {},
			bootstrap.WithOAuth(server.authz), bootstrap.WithResource(own))
		Expect(guarded.ServeStdio(ctx, nil, nil, oauth.Caller{})).
			To(MatchError(ContainSubstring("does not use the official SDK")))
	})
})

var _ = Describe("Protecting an MCP server with options", func() {
	It("refuses to register with origins and hosts that no browser sends", Label("G1", "F9"), func() {
		h := openHost(oauth.Config{Issuer: "https://cms.example"}, openStore(), nil)
		server := bootstrap.Guard(func(http.ResponseWriter, *http.Request, oauth.Caller) {},
			bootstrap.WithOAuth(h.authz),
			bootstrap.WithAllowedOrigins("*", "https://app.example/"),
			bootstrap.WithAllowedHosts("http://tunnel.example"), bootstrap.WithMaxRequestBody(-1))
		Expect(server.Register(echo.New())).
			To(MatchError(And(ContainSubstring(`WithAllowedOrigins has "*": write scheme://host or scheme://host:port`),
				ContainSubstring(`WithAllowedOrigins has "https://app.example/": write scheme://host`),
				ContainSubstring(`WithAllowedHosts has "http://tunnel.example": write host or host:port`),
				ContainSubstring("WithMaxRequestBody is -1 bytes: choose 64 KiB to"))))
	})

	It("omits scopes that cannot be quoted from the challenge", Label("G12"), func() {
		h := openHost(oauth.Config{Issuer: "https://cms.example"}, openStore(), nil,
			bootstrap.WithToolScopes(func(string) oauth.Scopes { return oauth.NewScopes(`a" realm="evil`) }))
		refused := h.send(tokensOf(h.exchange(h.code())).Access,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
		Expect(refused.Code).To(Equal(http.StatusForbidden))
		Expect(refused.Header().Get("WWW-Authenticate")).
			To(And(ContainSubstring("insufficient_scope"), Not(ContainSubstring("evil"))))
	})

	DescribeTable("requires the default scopes of a tool without scopes of its own",
		Label("G10"), func(option bootstrap.MCPOption) {
			h := openHost(oauth.Config{
				Issuer:        "https://cms.example",
				Verifier:      knowsScopes{"mcp", "write"},
				Scopes:        []oauth.Scope{{Name: "mcp"}, {Name: "write"}},
				DefaultScopes: []string{"mcp"},
			}, openStore(), nil, option)
			call := func(scope, tool string) *httptest.ResponseRecorder {
				GinkgoHelper()
				code := h.code(func(v url.Values) { v.Set("scope", scope) })
				return h.send(tokensOf(h.exchange(code)).Access,
					`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`)
			}
			Expect(call("write", "write").Code).NotTo(Equal(http.StatusForbidden))
			refused := call("write", "forgotten")
			Expect(refused.Code).To(Equal(http.StatusForbidden))
			Expect(refused.Header().Get("WWW-Authenticate")).
				To(And(ContainSubstring(`error="insufficient_scope"`), ContainSubstring(`scope="mcp"`)))
			Expect(call("mcp", "forgotten").Code).NotTo(Equal(http.StatusForbidden))
		},
		Entry("by its name", bootstrap.WithToolScopes(scopesOfWrite)),
	)
})

// scopesOfWrite forgets every tool but one.
func scopesOfWrite(tool string) (needed oauth.Scopes) {
	if tool == "write" {
		needed = oauth.NewScopes("write")
	}
	return needed
}

// knowsScopes is a verifier whose tokens may grant these scopes.
type knowsScopes []string

func (k knowsScopes) VerifyBearer(context.Context, string) (oauth.Principal, error) {
	return oauth.Principal{Subject: "ada", Scopes: k}, nil
}

var _ = Describe("Requiring scopes by the arguments of a call", Label("G10"), func() {
	const issuer = "https://cms.example"
	// Payments above 100 need another scope.
	scopes := bootstrap.WithToolScopes(func(tool string, arguments map[string]any) oauth.Scopes {
		amount, _ := arguments["amount"].(json.Number)
		if paid, err := amount.Float64(); tool == "pay" && err == nil && paid > 100 {
			return oauth.NewScopes("mcp:pay")
		}
		return oauth.NewScopes("mcp")
	})
	config := oauth.Config{
		Issuer:        issuer,
		Verifier:      newFakeVerifier(),
		Scopes:        []oauth.Scope{{Name: "mcp"}, {Name: "mcp:pay", Implies: []string{"mcp"}}},
		DefaultScopes: []string{"mcp"},
	}
	paying := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"` + arguments + `}}`
	}

	DescribeTable("asks for another scope only where these arguments need it:",
		func(message string, status int) {
			server, passed := openHost(config, openStore(), nil), 0
			send := server.guarding(func(w http.ResponseWriter, _ *http.Request, _ oauth.Caller) {
				passed++
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
			}, scopes)
			got := send(message)
			Expect(got.Code).To(Equal(status), got.Body.String())
			switch status {
			case http.StatusOK:
				Expect(passed).To(Equal(1))
			case http.StatusForbidden:
				Expect(got.Header().Get("WWW-Authenticate")).
					To(And(ContainSubstring(`error="insufficient_scope"`), ContainSubstring(`scope="mcp mcp:pay"`)))
				fallthrough
			default:
				Expect(passed).To(BeZero())
			}
		},
		Entry("a large amount", paying(`,"arguments":{"amount":100.01}`), http.StatusForbidden),
		Entry("a number larger than a float", paying(`,"arguments":{"note":1e999,"amount":101}`),
			http.StatusForbidden),
		Entry("a batch", `[`+paying(`,"arguments":{"amount":1}`)+`,`+
			paying(`,"arguments":{"amount":1000}`)+`]`, http.StatusBadRequest),
		Entry("arguments in another case, which some parsers read",
			paying(`,"arguments":{},"Arguments":{"amount":1000}`), http.StatusBadRequest),
	)
})
