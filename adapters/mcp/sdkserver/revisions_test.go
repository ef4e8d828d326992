package sdkserver

import (
	"context"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func (s *site) connect(ctx context.Context, transport sdk.Transport, version string) *sdk.ClientSession {
	GinkgoHelper()
	client := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(session.Close)
	return session
}

func names(tools []*sdk.Tool) []string {
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

var _ = Describe("Using the tools", func() {
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
