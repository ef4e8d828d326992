package inprocess

import (
	"context"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// bearing is a transport that sends a token.
type bearing struct{ token string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func (s *site) connect(ctx context.Context, transport sdk.Transport, version string) *sdk.ClientSession {
	GinkgoHelper()
	client := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(session.Close)
	return session
}

func (s *site) streamable(token string) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: bearing{token}}}
}

func (s *site) sse(token string) sdk.Transport {
	return &sdk.SSEClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: bearing{token}}}
}

func names(tools []*sdk.Tool) []string {
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

var _ = Describe("Using the tools", func() {
	DescribeTable("works for the SDK's client over every revision",
		func(ctx SpecContext, version, negotiated string, transport func(*site, string) sdk.Transport) {
			s := openSite()
			client := s.connect(ctx, transport(s, bob), version)
			Expect(client.InitializeResult().ProtocolVersion).To(Equal(negotiated))

			listed, err := client.ListTools(ctx, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(names(listed.Tools)).To(ConsistOf("read", "write", "whoami", "hold"))

			result, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "whoami"})
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Content[0].(*sdk.TextContent).Text).To(Equal("bob"))

			_, err = client.CallTool(ctx, &sdk.CallToolParams{Name: "publish"})
			Expect(err).To(MatchError(ContainSubstring(`unknown tool "publish"`)))
		},
		Entry("2024-11-05", Label("2024-11-05"), "2024-11-05", "2024-11-05", (*site).sse),
		Entry("2025-11-25 over HTTP+SSE", Label("2024-11-05"), "2025-11-25", "2025-11-25", (*site).sse),
		Entry("the newest over HTTP+SSE", Label("2024-11-05"), "", "2025-11-25", (*site).sse),
		Entry("2025-03-26", Label("2025-03-26"), "2025-03-26", "2025-03-26", (*site).streamable),
		Entry("2025-06-18", Label("2025-06-18"), "2025-06-18", "2025-06-18", (*site).streamable),
		Entry("2025-11-25", Label("2025-11-25"), "2025-11-25", "2025-11-25", (*site).streamable),
		Entry("2026-07-28", Label("2026-07-28"), "2026-07-28", "2026-07-28", (*site).streamable),
	)

	It("marks every list as private for caches", Label("2026-07-28"), func(ctx SpecContext) {
		s := openSite()
		s.sdk.AddPrompt(&sdk.Prompt{Name: "p"}, nil)
		s.sdk.AddResource(&sdk.Resource{Name: "r", URI: "cms://r"},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{Text: "r"}}}, nil
			})
		s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{Name: "t", URITemplate: "cms://t/{id}"}, nil)
		for _, method := range []string{"server/discover", "tools/list", "prompts/list", "resources/list",
			"resources/templates/list", "resources/read"} {
			got := s.send(ctx, http.MethodPost, "/mcp", modern(method, `"uri":"cms://r"`),
				modernHeaders(alice, method, "cms://r")...)
			Expect(got.StatusCode).To(Equal(http.StatusOK), method+got.body)
			Expect(got.body).To(ContainSubstring(`"cacheScope":"private"`), method)
		}
	})

	It("gives each message of a session its own caller", Label("G14"), func(ctx SpecContext) {
		s := openSite()
		session := s.session(ctx, alice)
		s.tokens.set(func(t *tokens) {
			refreshed := t.callers[alice]
			refreshed.Scopes = oauth.NewScopes("mcp:read", "mcp:write")
			t.callers["ppa_refreshed"] = refreshed
		})
		got := s.send(ctx, http.MethodPost, "/mcp", call(2, "write"), in(session, "ppa_refreshed")...)
		Expect(got.body).To(ContainSubstring("ran write"))
	})
})

// modern builds a 2026-07-28 request with more params.
func modern(method, params string) string {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` +
		strings.Join([]string{params, meta}, ",") + `}}`
}

func modernHeaders(token, method, name string) []string {
	return append(as(token), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name)
}
