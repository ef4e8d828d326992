package oauth

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Reading a client's metadata", Label("CIMD"), func() {
	read := func(rules ClientMetadataRules, change ...func(map[string]any)) (*ClientMetadata, error) {
		return NewClientMetadata(RestoreClientID(clientURL), document(change...), rules)
	}
	with := func(member string, value any) func(map[string]any) {
		return func(members map[string]any) { members[member] = value }
	}
	without := func(member string) func(map[string]any) {
		return func(members map[string]any) { delete(members, member) }
	}

	DescribeTable("accepts", func(change func(map[string]any)) {
		_, err := read(ClientMetadataRules{}, change)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("members that it does not know", Label("C35"), with("software_version", 7.0)),
		Entry("further grant types", Label("C32"),
			with("grant_types", []any{"authorization_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"})),
		Entry("signing without keys, because none is listed too", Label("C30"), func(m map[string]any) {
			m["token_endpoint_auth_method"] = "private_key_jwt"
			m["token_endpoint_auth_methods_supported"] = []any{"none", "private_key_jwt"}
		}),
		Entry("public keys", Label("C31"), with("jwks", map[string]any{"keys": []any{map[string]any{
			"kty": "EC",
			"crv": "P-256",
			"x":   "x",
			"y":   "y",
		}}})),
		Entry("a localised link", Label("C33"), with("tos_uri#de", "https://client.example/agb")),
		Entry("a link over http, which is not shown", Label("C33"), with("logo_uri", "http://client.example/logo")),
		Entry("a link that is null, which is not shown", Label("C33"), with("client_uri", nil)),
		Entry("unusable redirect URIs beside a usable one", Label("C27"),
			with("redirect_uris", []any{"http://client.example/cb", "cursor://x", "https://client.example/cb"})),
	)

	DescribeTable("refuses", func(kind Kind, change func(map[string]any)) {
		_, err := read(ClientMetadataRules{}, change)
		Expect(err).To(Refused(kind))
	},
		Entry("another client_id", Label("C23"), InvalidClientDocument,
			with("client_id", "https://client.example:443/client.json")),
		Entry("a client_id that is not a string", Label("C23"), InvalidClientDocument,
			with("client_id", []any{clientURL})),
		Entry("no client_id", Label("C23"), InvalidClientDocument, without("client_id")),
		Entry("no client_name", Label("C24"), InvalidClientDocument, without("client_name")),
		Entry("a blank client_name", Label("C24"), InvalidClientDocument, with("client_name", " \t")),
		Entry("a client_name with NUL, which not every store can keep", Label("C24"), InvalidClientDocument,
			with("client_name", "A\x00client")),
		Entry("no redirect_uris", Label("C25"), InvalidClientDocument, without("redirect_uris")),
		Entry("redirect_uris that are null", Label("C25"), InvalidClientDocument, with("redirect_uris", nil)),
		Entry("redirect_uris that are not strings", Label("C25"), InvalidClientDocument,
			with("redirect_uris", []any{1.0})),
		Entry("no redirect URI", Label("C25"), InvalidClientDocument, with("redirect_uris", []any{})),
		Entry("only unusable redirect URIs", Label("C26", "C27"), InvalidClientDocument,
			with("redirect_uris",
				[]any{"https://client.example/cb?code=1", "https://client.example/cb?%73tate=1", "javascript:x"})),
		Entry("a client_secret", Label("C28"), InvalidClientDocument, with("client_secret", nil)),
		Entry("an expiry of a client_secret", Label("C28"), InvalidClientDocument,
			with("client_secret_expires_at", 0.0)),
		Entry("a method with a secret", Label("C29"), InvalidClientDocument,
			with("token_endpoint_auth_method", "client_secret_basic")),
		Entry("a method outside its own list", Label("C30"), InvalidClientDocument, func(m map[string]any) {
			m["token_endpoint_auth_method"] = "private_key_jwt"
			m["token_endpoint_auth_methods_supported"] = []any{"none"}
		}),
		Entry("a method that is not offered", Label("C30", "C44"), UnsupportedClient,
			with("token_endpoint_auth_method", "tls_client_auth")),
		Entry("a private key", Label("C31"), InvalidClientDocument,
			with("jwks", map[string]any{"keys": []any{map[string]any{"kty": "EC", "d": "x"}}})),
		Entry("a symmetric key", Label("C31"), InvalidClientDocument,
			with("jwks", map[string]any{"keys": []any{map[string]any{"kty": "oct"}}})),
		Entry("keys in two places", Label("C31"), InvalidClientDocument, func(m map[string]any) {
			m["jwks"] = map[string]any{"keys": []any{}}
			m["jwks_uri"] = "https://client.example/jwks"
		}),
		Entry("grants without codes", Label("C32"), InvalidClientDocument, with("grant_types", []any{"implicit"})),
		Entry("responses without codes", Label("C32"), InvalidClientDocument, with("response_types", []any{"token"})),
		Entry("keys at an address that is not https", Label("C33"), InvalidClientDocument,
			with("jwks_uri", "http://client.example/jwks")),
		Entry("keys at no address", Label("C33"), InvalidClientDocument, with("jwks_uri", nil)),
		Entry("keys at an address without a host", Label("C33"), InvalidClientDocument,
			with("jwks_uri", "https:///jwks")),
		Entry("a registration at another server", Label("L2"), LostRegistration, with("self_registered", true)),
		Entry("a demand for bound tokens", Label("C34"), UnsupportedClient, with("dpop_bound_access_tokens", true)),
	)

	It("accepts a document that does not name itself where the operator allows it", Label("C23"), func() {
		client, err := read(ClientMetadataRules{AllowDocumentsWithoutClientID: true}, without("client_id"))
		Expect(err).NotTo(HaveOccurred())
		Expect(client.DeclaresClientID()).To(BeFalse())
	})

	It("counts the redirect URIs that it cannot use", Label("C27"), func() {
		client, err := read(ClientMetadataRules{},
			with("redirect_uris", []any{"http://client.example/cb", "https://client.example/cb"}))
		Expect(err).NotTo(HaveOccurred())
		Expect(client.IgnoredRedirects()).To(Equal(1))
	})

	It("fills in the only redirect URI, unless it needs a port", Label("A10"), func() {
		only, err := read(ClientMetadataRules{}, with("redirect_uris", []any{"https://client.example/cb"}))
		Expect(err).NotTo(HaveOccurred())
		target, err := only.RedirectURI("", ClientMetadataRules{})
		Expect(err).NotTo(HaveOccurred())
		Expect(target.String()).To(Equal("https://client.example/cb"))
		local, err := read(ClientMetadataRules{}, with("redirect_uris", []any{"http://localhost/cb"}))
		Expect(err).NotTo(HaveOccurred())
		_, err = local.RedirectURI("", ClientMetadataRules{})
		Expect(err).To(Refused(InvalidRequest))
	})
})
