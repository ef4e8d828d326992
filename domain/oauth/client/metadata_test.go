package client_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

var _ = Describe("Reading a client's metadata", Label("CIMD"), func() {
	read := func(change func(map[string]any)) (*client.Metadata, error) {
		return new(client.Rules).NewMetadata(oauth.RestoreClientID(clientURL), document(change))
	}
	with := func(member string, value any) func(map[string]any) {
		return func(members map[string]any) { members[member] = value }
	}

	DescribeTable("accepts", func(change func(map[string]any)) {
		_, err := read(change)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("signing without keys, because none is listed too", Label("C30"), func(m map[string]any) {
			m["token_endpoint_auth_method"] = "private_key_jwt"
			m["token_endpoint_auth_methods_supported"] = []any{"none", "private_key_jwt"}
		}),
		Entry("a localised link", Label("C33"), with("tos_uri#de", "https://client.example/agb")),
	)

	DescribeTable("refuses", func(kind oauth.Kind, change func(map[string]any)) {
		_, err := read(change)
		Expect(err).To(Refused(kind))
	},
		Entry("a client_name with NUL, which not every store can keep", Label("C24"), oauth.InvalidClientDocument,
			with("client_name", "A\x00client")),
		Entry("only unusable redirect URIs", Label("C26", "C27"), oauth.InvalidClientDocument,
			with("redirect_uris",
				[]any{"https://client.example/cb?code=1", "https://client.example/cb?%73tate=1", "javascript:x"})),
		Entry("a method outside its own list", Label("C30"), oauth.InvalidClientDocument, func(m map[string]any) {
			m["token_endpoint_auth_method"] = "private_key_jwt"
			m["token_endpoint_auth_methods_supported"] = []any{"none"}
		}),
		Entry("keys in two places", Label("C31"), oauth.InvalidClientDocument, func(m map[string]any) {
			m["jwks"] = map[string]any{"keys": []any{}}
			m["jwks_uri"] = "https://client.example/jwks"
		}),
		Entry("keys at no address", Label("C33"), oauth.InvalidClientDocument, with("jwks_uri", nil)),
		Entry("keys at an address without a host", Label("C33"), oauth.InvalidClientDocument,
			with("jwks_uri", "https:///jwks")),
		Entry("a registration at another server", Label("L2"), oauth.LostRegistration, with("self_registered", true)),
	)
})
