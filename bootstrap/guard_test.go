package bootstrap_test

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/audit"
	"github.com/pasteport/pasteport/domain/oauth"
)

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
		guarded := bootstrap.Guard(func(w http.ResponseWriter, _ *http.Request, _ oauth.Caller) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"isError":true}}`)
		}, bootstrap.WithOAuth(server.authz), bootstrap.WithAudit(func(_ context.Context, call audit.Call) {
			calls = append(calls, call)
		}))
		server.Echo = echo.New()
		Expect(guarded.Register(server.Echo)).To(Succeed())
		first := tokensOf(server.exchange(server.code())).Access
		server.sendTo(issuer+"/mcp", first,
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
		guarded := bootstrap.Guard(func(w http.ResponseWriter, r *http.Request, _ oauth.Caller) {
			answered++
			_, _ = io.WriteString(w,
				`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"},{"name":"open"}],"prompts":[{`+
					`"name":"secret"}],"resources":[{"uri":"secret"}]}}`)
		}, bootstrap.WithOAuth(server.authz), bootstrap.WithToolPolicy(open), bootstrap.WithPromptPolicy(open),
			bootstrap.WithResourcePolicy(open))
		server.Echo = echo.New()
		Expect(guarded.Register(server.Echo)).To(Succeed())
		first := tokensOf(server.exchange(server.code())).Access
		Expect(server.sendTo(issuer+"/mcp", first, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Body.String()).To(
			Equal(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"open"}],"prompts":[],"resources":[]}}`))
		for _, message := range []string{`"tools/call","params":{"name":"secret"}`,
			`"prompts/get","params":{"name":"secret"}`, `"resources/read","params":{"uri":"secret"}`} {
			Expect(server.sendTo(issuer+"/mcp", first, `{"jsonrpc":"2.0","id":1,"method":`+message+`}`).Body.String()).
				To(ContainSubstring(`"error"`))
		}
		Expect(answered).To(Equal(1))
	})

	It("replaces a response that cannot be filtered, without the mention of a gateway", Label("U27"), func() {
		guarded := bootstrap.Guard(func(w http.ResponseWriter, _ *http.Request, _ oauth.Caller) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[`)
		}, bootstrap.WithOAuth(server.authz), bootstrap.WithToolPolicy(func(oauth.Caller, string) bool { return true }))
		server.Echo = echo.New()
		Expect(guarded.Register(server.Echo)).To(Succeed())
		first := tokensOf(server.exchange(server.code())).Access
		answer := server.sendTo(issuer+"/mcp", first, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		Expect(answer.Code).To(Equal(http.StatusBadGateway))
		Expect(answer.Body.String()).To(And(ContainSubstring("cannot be read"), Not(ContainSubstring("gateway"))))
	})

	It("leaves no URI to the policy of the host that parsers read differently", Label("U26"), func() {
		var passed []string
		guarded := bootstrap.Guard(func(w http.ResponseWriter, r *http.Request, _ oauth.Caller) {
			body, _ := io.ReadAll(r.Body)
			passed = append(passed, string(body))
		}, bootstrap.WithOAuth(server.authz), bootstrap.WithResourcePolicy(func(_ oauth.Caller, uri string) bool {
			return bootstrap.FoldResourceURI(uri) != "file:///secret"
		}))
		server.Echo = echo.New()
		Expect(guarded.Register(server.Echo)).To(Succeed())
		first := tokensOf(server.exchange(server.code())).Access
		read := func(uri string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + uri + `"}}`
		}
		for _, uri := range []string{"file:///a/../secret", "file:///%2573ecret", "file:///SECRET?x",
			"file:///open?x"} {
			server.sendTo(issuer+"/mcp", first, read(uri))
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
