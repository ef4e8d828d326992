package features_test

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The MCP server's URL with a trailing slash", Label("MCP transports", "F13"), func() {
	worlds := []TableEntry{
		Entry("the demo site", func() *World { return NewWorld() }),
		Entry("a gateway", func() *World { return NewGateway(NewUpstream(apiKey).URL + "/mcp") }),
	}
	post := func(ctx SpecContext, world *World, access string) Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, world.MCP()+"/", strings.NewReader(listTools))
		Expect(err).NotTo(HaveOccurred())
		for name, value := range map[string]string{
			"Content-Type":         "application/json",
			"Accept":               "application/json, text/event-stream",
			"MCP-Protocol-Version": stateless,
			"Mcp-Method":           "tools/list",
		} {
			r.Header.Set(name, value)
		}
		if access != "" {
			r.Header.Set("Authorization", "Bearer "+access)
		}
		return Send(r)
	}

	DescribeTable("works like the URL without it, with a token for the same resource, in",
		Label("A30", "F7"), func(ctx SpecContext, open func() *World) {
			world := open()
			challenged := post(ctx, world, "")
			Expect(challenged.StatusCode).To(Equal(http.StatusUnauthorized))
			Expect(challenged.Header.Values("WWW-Authenticate")).To(ConsistOf(
				ContainSubstring(`resource_metadata="` + world.Issuer + `/.well-known/oauth-protected-resource/mcp/"`)))
			Expect(Get(ctx, world.Issuer+resourcePath+"/").Text).
				To(ContainSubstring(`"resource":"` + world.MCP() + `/"`))
			Expect(Get(ctx, world.Issuer+resourcePath).Text).To(ContainSubstring(`"resource":"` + world.MCP() + `"`))

			client := world.NewClient()
			slashed := func(v url.Values) { v.Set("resource", world.MCP()+"/") }
			form := client.Exchange(client.Authorize(ctx, slashed))
			slashed(form)
			tokens := client.Token(ctx, form).Tokens()
			Expect(post(ctx, world, tokens.Access).StatusCode).To(Equal(http.StatusOK))
			Expect(world.Call(ctx, tokens.Access).StatusCode).
				To(Equal(http.StatusOK), "both URLs are the same resource")
			Expect(Get(ctx, world.MCP()+"/other").StatusCode).To(Equal(http.StatusNotFound))
			Expect(Get(ctx, world.MCP()+"//").StatusCode).To(Equal(http.StatusNotFound))
		}, worlds)

	DescribeTable("works for the Go SDK's own client, which compares resources byte for byte, in",
		Label("N9"), func(ctx SpecContext, open func() *World) {
			world := open()
			client := world.NewSDKClient()
			session := ConnectSDK(ctx, sessions, &mcp.StreamableClientTransport{
				Endpoint: world.MCP() + "/", OAuthHandler: client, HTTPClient: &http.Client{Transport: &client.Wire},
			})
			listed, err := session.ListTools(ctx, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed.Tools).NotTo(BeEmpty())
			Expect(client.Wire.TokenRequests()).
				To(ConsistOf(HaveField("Form", HaveKeyWithValue("resource", []string{world.MCP() + "/"}))))
		}, worlds)

	It("continues a session that was opened without it", Label("G14"), func(ctx SpecContext) {
		world := NewWorld()
		talk := world.Converse(ctx, sessions, world.NewClient().Connect(ctx).Access)
		talk.target = world.MCP() + "/"
		Expect(talk.Ask(ctx, "tools/list", params{}).Tools()).NotTo(BeEmpty())
	})

	It("passes the checks of doctor in both spellings", Label("doctor"), func(ctx SpecContext) {
		world := NewWorld()
		for _, address := range []string{world.MCP(), world.MCP() + "/"} {
			d := Diagnose(ctx, address, "--timeout", patience.String())
			Expect(d.With("failed")).To(BeEmpty(), d.Out)
		}
	})
})
