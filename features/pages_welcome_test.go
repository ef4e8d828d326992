package features_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// visit opens an address as a browser does.
func visit(ctx context.Context, address, language string, headers ...string) Response {
	GinkgoHelper()
	r := must(http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody))
	r.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	r.Header.Set("Accept-Language", language)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return Send(r)
}

var _ = Describe("Opening the address of an MCP server in a browser", Label("F20"), func() {
	world := EachWorld()

	It("shows the address to copy and what to do with it", func(ctx SpecContext) {
		page := visit(ctx, world.MCP(), "de")
		Expect(page.Header.Get("Content-Type")).To(HavePrefix("text/html"))
		Expect(page.Header.Get("Content-Language")).To(Equal("de"))
		Expect(page.Text).To(ContainSubstring(world.MCP()))
		Expect(page.Text).To(ContainSubstring("Kopieren Sie die Adresse"))
		Expect(page.Text).To(ContainSubstring(world.Issuer + "/oauth/connections"))
		Expect(page.Text).NotTo(ContainSubstring("<script"))
	})

	It("has the status and the challenge of a request without a token", Label("G3"), func(ctx SpecContext) {
		page, plain := visit(ctx, world.MCP(), "en"), Get(ctx, world.MCP())
		Expect(page.StatusCode).To(Equal(http.StatusUnauthorized))
		Expect(page.Header.Values("WWW-Authenticate")).To(Equal(plain.Header.Values("WWW-Authenticate")))
		Expect(page.Header.Get("Cache-Control")).To(Equal("no-store"))
		Expect(plain.Text).To(BeEmpty())
	})

	DescribeTable("shows no page to a client", func(ctx SpecContext, headers ...string) {
		Expect(visit(ctx, world.MCP(), "en", headers...).Header.Get("Content-Type")).NotTo(HavePrefix("text/html"))
	},
		Entry("that asks for an event stream", "Accept", "text/event-stream"),
		Entry("that asks for JSON", "Accept", "application/json, text/event-stream"),
		Entry("with a token", "Authorization", "Bearer unknown"),
		Entry("of another origin", "Origin", "https://evil.example"),
	)

	It("lists every server at the root", Label("U1"), func(ctx SpecContext) {
		page := visit(ctx, world.Issuer+"/", "en")
		Expect(page.StatusCode).To(Equal(http.StatusOK))
		Expect(page.Text).To(ContainSubstring("Connect an app to"))
		Expect(page.Text).To(ContainSubstring(world.MCP()))
	})
})

var _ = Describe("The name of an MCP server", Label("pages", "A35"), func() {
	It("is in the headline and the title of the consent page, above its address and the name of the site",
		func(ctx SpecContext) {
			world := NewWorld(func(c *service.Config) {
				c.ResourceName, c.Appearance.Name = "The Gazette's <articles>", "The Gazette"
			})
			page := world.NewClient().Consent(ctx).Text
			Expect(page).To(And(ContainSubstring(" to <bdi>The Gazette&#39;s &lt;articles&gt;</bdi>?</h1>"),
				ContainSubstring(" to The Gazette&#39;s &lt;articles&gt;?</title>"),
				ContainSubstring(`<dt>Server</dt><dd><bdi class="host" dir="ltr">`+world.Issuer+`/mcp</bdi>`),
				ContainSubstring("Your API token for <bdi>The Gazette</bdi>")))
		})

	It("tells the connections to several servers apart, on the pages and in the list of grants",
		Label("gateway", "U1"), func(ctx SpecContext) {
			upstream := NewUpstream(apiKey)
			world := NewGateway(upstream.URL+"/mcp", func(c *service.Config) {
				c.ResourceName = "Tools"
				c.Gateway.Upstreams = append(c.Gateway.Upstreams, serverAt("/files", upstream.URL+"/mcp"))
			})
			client := world.NewClient()
			files := func(form url.Values) { form.Set("resource", world.Issuer+"/files") }
			Expect(client.Consent(ctx, files).Text).To(ContainSubstring("to <bdi>Tools (/files)</bdi>?</h1>"))
			Expect(client.Consent(ctx).Text).To(ContainSubstring("to <bdi>Tools (/mcp)</bdi>?</h1>"))
			client.Authorize(ctx)
			client.Authorize(ctx, files)

			shown := world.Connections(ctx, apiKey)
			Expect(shown.StatusCode).To(Equal(http.StatusOK))
			for _, path := range []string{"/mcp", "/files"} {
				Expect(shown.Text).To(MatchRegexp(`Server</dt><dd><span class="line"><bdi>Tools \(` +
					path + `\)</bdi></span> ?<bdi class="host" dir="ltr">` + world.Issuer + path + `</bdi>`))
			}

			settings := filepath.Join(GinkgoT().TempDir(), "pasteport.yaml")
			lines := "issuer: " + world.Issuer + "\ndev: true\nresource-name: Tools\nupstream: [" + upstream.URL +
				"/mcp, /files = " + upstream.URL + "/mcp]\n"
			Expect(os.WriteFile(settings, []byte(lines), 0o600)).To(Succeed())
			Expect(world.Grants(ctx, "--config", settings)).To(ConsistOf(
				And(HaveField("Server", "Tools (/mcp)"), HaveField("Resource", world.Issuer+"/mcp")),
				And(HaveField("Server", "Tools (/files)"), HaveField("Resource", world.Issuer+"/files"))))
			listed := Run(ctx, append([]string{"grants", "list", "--config", settings}, world.Kept()...)...).Out
			Expect(listed).To(And(ContainSubstring("  Tools (/mcp)  "), ContainSubstring("  Tools (/files)  ")))
		})

	It("is the address for a command that does not know the settings of the service", func(ctx SpecContext) {
		world := NewWorld()
		world.NewClient().Authorize(ctx)
		Expect(world.Grants(ctx)).
			To(ConsistOf(And(HaveField("Server", ""), HaveField("Resource", world.Issuer+"/mcp"))))
		address := world.Issuer + "/mcp"
		Expect(Run(ctx, append([]string{"grants", "list"}, world.Kept()...)...).Out).
			To(ContainSubstring("  …" + address[len(address)-15:] + "  "))
	})
})

var _ = Describe("The word for what people paste", Label("pages", "A37"), func() {
	It("is “key” on every page if the site calls it so, in the reader's language", func(ctx SpecContext) {
		world := NewWorld(func(c *service.Config) { c.Appearance.CredentialWord = "key" })
		client := world.NewClient()
		Expect(client.Consent(ctx).Text).To(ContainSubstring("The app never sees this key. "))
		Expect(world.Connections(ctx, "unknown").Text).To(ContainSubstring("with this key, or this site does not know"))
		Expect(visit(ctx, world.Issuer+"/oauth/connections", "de").Text).
			To(ContainSubstring("Fügen Sie Ihren Schlüssel ein."))
	})
})
