package features_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

var _ = Describe("A proxy that removes the path of the issuer", func() {
	It("is named to the client that gets 404", func(ctx SpecContext) {
		world := NewWorld(func(config *service.Config) { config.Issuer += "/auth" })
		said := ContainSubstring("a proxy has removed /auth from the path of this request")
		Expect(Get(ctx, world.Issuer+"/oauth/authorize").Text).To(said)
		Expect(Get(ctx, world.Issuer+"/mcp").Text).To(said)
		Expect(Get(ctx, world.Issuer+"/elsewhere").Text).NotTo(said)
	})
})

var _ = Describe("An app with the wrong URL", Label("MCP transports", "gateway"), func() {
	DescribeTable("gets the URLs of the MCP servers with", func(ctx SpecContext, method, path string, status int) {
		upstream := NewUpstream(apiKey).URL + "/mcp"
		world := NewGateway(upstream, func(c *service.Config) {
			c.Gateway.Upstreams = append(c.Gateway.Upstreams, serverAt("/files", upstream))
		})
		r, err := http.NewRequestWithContext(ctx, method, world.Issuer+path, strings.NewReader(listTools))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Content-Type", "application/json")
		answer := Send(r)
		Expect(answer.StatusCode).To(Equal(status), answer.Text)
		named := ContainSubstring("connect to " + world.Issuer + "/mcp or " + world.Issuer + "/files")
		if status != http.StatusNotFound {
			named = Not(named)
		}
		Expect(answer.Text).To(named)
	},
		Entry("another path", http.MethodPost, "/mpc", http.StatusNotFound),
		Entry("no path", http.MethodPost, "", http.StatusNotFound),
		Entry("a path of HTTP+SSE", http.MethodGet, "/sse", http.StatusNotFound),
		Entry("another path, to end a session", http.MethodDelete, "/files2", http.StatusNotFound),
		Entry("but not with a server's URL", http.MethodPost, "/files", http.StatusUnauthorized),
		Entry("but not with another method at a server's URL", http.MethodPut, "/mcp", http.StatusMethodNotAllowed),
	)
})
