package sdkserver

import (
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

const scopeChallenge = `Bearer ` + metadata + `, error="insufficient_scope", ` +
	`error_description="The access token lacks a scope that this operation needs", scope="mcp:read mcp:write"`

var _ = Describe("Requesting more scopes", Label("G10"), func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	expectStepUp := func(got answer) {
		GinkgoHelper()
		Expect(got.StatusCode).To(Equal(http.StatusForbidden), got.body)
		Expect(got.Header.Values("WWW-Authenticate")).To(Equal([]string{scopeChallenge}))
		Expect(got.Header.Get("Cache-Control")).To(Equal("no-store"))
		Expect(got.body).
			To(MatchJSON(`{"error":"insufficient_scope","error_description":"The access token lacks a scope that ` +
				`this operation needs"}`))
	}

	It("names all scopes in one challenge in a session", Label("2025-11-25"), func(ctx SpecContext) {
		expectStepUp(s.send(ctx, http.MethodPost, "/mcp", call(2, "write"), in(s.session(ctx, alice), alice)...))
	})

	It("names them without sessions", Label("2026-07-28"), func(ctx SpecContext) {
		expectStepUp(s.send(ctx, http.MethodPost, "/mcp", modern("tools/call", `"name":"write"`),
			modernHeaders(alice, "tools/call", "write")...))
	})

	It("finds a call hidden in a batch", Label("2025-03-26"), func(ctx SpecContext) {
		batch := "[" + call(2, "read") + "," + call(3, "write") + "]"
		expectStepUp(s.send(ctx, http.MethodPost, "/mcp", batch,
			append(as(alice), "Mcp-Session-Id", s.session(ctx, alice))...))
	})

	It("names them for a message of HTTP+SSE", Label("2024-11-05"), func(ctx SpecContext) {
		expectStepUp(s.send(ctx, http.MethodPost, "/mcp/message?sessionid=any", call(2, "write"), as(alice)...))
	})

	It("looks at the arguments that the tool gets, also for a transport without a guard", func(ctx SpecContext) {
		s := openSite(func(o *Options) {
			o.CallScopes = func(tool string, arguments map[string]any) oauth.Scopes {
				if tool == "read" && arguments["draft"] == true {
					return oauth.NewScopes("mcp:write")
				}
				return oauth.NewScopes("mcp:read")
			}
		})
		for arguments, refused := range map[string]bool{
			`{"draft":false}`:              false,
			`{"draft":true}`:               true,
			`{"draft":true,"Draft":false}`: true,
			`[true]`:                       false,
		} {
			body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":` +
				arguments + `}}`
			got := s.send(ctx, http.MethodPost, "/mcp", body, in(s.session(ctx, alice), alice)...)
			Expect(got.StatusCode == http.StatusForbidden).To(Equal(refused), arguments)
		}
		theirs, ours := sdk.NewInMemoryTransports()
		_, err := s.sdk.Connect(ctx, ours, nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = s.connect(ctx, theirs, "").
			CallTool(ctx, &sdk.CallToolParams{Name: "read", Arguments: map[string]any{"draft": true}})
		Expect(err).To(MatchError(ContainSubstring("insufficient scope")))
	})

	It("requests no scope when the role is missing", func(ctx SpecContext) {
		s.tokens.set(func(t *tokens) {
			t.callers["ppa_guest"] = oauth.Caller{Grant: "C", Scopes: oauth.NewScopes("mcp:read")}
		})
		got := s.send(ctx, http.MethodPost, "/mcp", call(2, "publish"), in(s.session(ctx, "ppa_guest"), "ppa_guest")...)
		Expect(got.StatusCode).To(Equal(http.StatusOK))
		Expect(got.body).To(ContainSubstring(`"code":-32602`))
	})
})

var _ = Describe("The policy inside the SDK", func() {
	It("applies to a transport without a guard", func(ctx SpecContext) {
		s := openSite()
		theirs, ours := sdk.NewInMemoryTransports()
		_, err := s.sdk.Connect(ctx, ours, nil)
		Expect(err).NotTo(HaveOccurred())
		client := s.connect(ctx, theirs, "")
		_, err = client.CallTool(ctx, &sdk.CallToolParams{Name: "publish"})
		Expect(err).To(MatchError(ContainSubstring("unknown tool")))
		_, err = client.CallTool(ctx, &sdk.CallToolParams{Name: "write"})
		Expect(err).To(MatchError(ContainSubstring("insufficient scope")))
	})
})
