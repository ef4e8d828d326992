package features_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// visit opens an address as a browser does.
func visit(ctx context.Context, address, language string, headers ...string) Response {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	r.Header.Set("Accept-Language", language)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return Send(r)
}

var _ = Describe("Opening the address of an MCP server in a browser", Label("F20"), func() {
	var world *World
	BeforeEach(func() { world = NewWorld() })

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

	DescribeTable("shows no page to a client",
		func(ctx SpecContext, headers ...string) {
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
