package sdkserver

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Publishing the resource's metadata", Label("F6", "RFC 9728"), func() {
	It("has one document when the resource has no path", func(ctx SpecContext) {
		root := openSite(func(o *Options) { o.Resource = oauth.NewResource(issuer) })
		Expect(root.send(ctx, http.MethodGet, "/.well-known/oauth-protected-resource", "").body).
			To(ContainSubstring(`"resource":"https://cms.example"`))
		Expect(root.send(ctx, http.MethodPost, "/", initialize).challenge()).To(
			HavePrefix(`Bearer resource_metadata="https://cms.example/.well-known/oauth-protected-resource", `))
	})
})
