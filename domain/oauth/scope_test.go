package oauth

import (
	"strings"
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A scope parameter", Label("A23"), func() {
	It("lets a token that keeps it keep no more of the request", func() {
		request := "grant_type=refresh_token&scope=mcp&refresh_token=secret"
		_, after, _ := strings.Cut(request, "scope=")
		scopes, err := ParseScopes(after[:len("mcp")])
		Expect(err).NotTo(HaveOccurred())
		Expect(scopes.String()).To(Equal("mcp"))
		Expect(unsafe.StringData(scopes.String())).NotTo(BeIdenticalTo(unsafe.StringData(after)))
	})
})
