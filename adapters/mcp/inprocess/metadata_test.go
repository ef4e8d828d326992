package inprocess

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Publishing the resource's metadata", Label("F6", "RFC 9728"), func() {
	var s *site
	BeforeEach(func() { s = openSite() })

	DescribeTable("serves the same document",
		func(ctx SpecContext, path string) {
			got := s.send(ctx, http.MethodGet, path, "", "Host", "evil.example", "X-Forwarded-Host", "evil.example")
			Expect(got.StatusCode).To(Equal(http.StatusOK))
			Expect(got.body).
				To(Equal(`{"resource":"https://cms.example/mcp","authorization_servers":["https://cms.example"],` +
					`"scopes_supported":["mcp:read"],"bearer_methods_supported":["header"],` +
					`"resource_name":"CMS"}`))
			Expect(got.Header.Get("Content-Type")).To(Equal("application/json"))
			Expect(got.Header.Get("Cache-Control")).To(Equal("public, max-age=300"))
			Expect(got.Header.Get("Access-Control-Allow-Origin")).To(Equal("*"))
			Expect(got.Header.Get("ETag")).NotTo(BeEmpty())
		},
		Entry("at the path that the challenge names", Label("F7", "F8"), "/.well-known/oauth-protected-resource/mcp"),
		Entry("at the root", "/.well-known/oauth-protected-resource"),
	)

	It("answers HEAD, a preflight and a conditional request", Label("F1"), func(ctx SpecContext) {
		const path = "/.well-known/oauth-protected-resource/mcp"
		head := s.send(ctx, http.MethodHead, path, "")
		Expect(head.StatusCode).To(Equal(http.StatusOK))
		Expect(head.body).To(BeEmpty())
		preflight := s.send(ctx, http.MethodOptions, path, "", "Origin", "https://any.example")
		Expect(preflight.StatusCode).To(Equal(http.StatusNoContent))
		Expect(preflight.Header.Get("Access-Control-Allow-Headers")).To(ContainSubstring("MCP-Protocol-Version"))
		Expect(s.send(ctx, http.MethodGet, path, "", "If-None-Match", head.Header.Get("ETag")).StatusCode).
			To(Equal(http.StatusNotModified))
	})

	DescribeTable("answers 404 at other paths", func(ctx SpecContext, path string) {
		Expect(s.send(ctx, http.MethodGet, path, "", as(alice)...).StatusCode).To(Equal(http.StatusNotFound))
	},
		Entry(nil, "/.well-known/oauth-protected-resource/other"),
		Entry(nil, "/.well-known/oauth-protected-resource/mcp/message"),
		Entry(nil, "/mcp/other"), Entry(nil, "/mcp//"),
	)

	It("has one document when the resource has no path", func(ctx SpecContext) {
		root := openSite(func(o *Options) { o.Resource = oauth.NewResource(issuer) })
		Expect(root.send(ctx, http.MethodGet, "/.well-known/oauth-protected-resource", "").body).
			To(ContainSubstring(`"resource":"https://cms.example"`))
		Expect(root.send(ctx, http.MethodPost, "/", initialize).challenge()).To(
			HavePrefix(`Bearer resource_metadata="https://cms.example/.well-known/oauth-protected-resource", `))
	})
})
