package doctor

import (
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Which well-known clients can log in", Label("T4"), func() {
	const public, local = "https://cms.example/mcp", "http://127.0.0.1:8080/mcp"
	document, registering := KnownClient{Document: "https://client.example/c.json"}, KnownClient{}

	DescribeTable("depends on the metadata:",
		func(at string, client KnownClient, members map[string]any, expected ClientGroup) {
			endpoint, err := url.Parse(at)
			Expect(err).NotTo(HaveOccurred())
			e := newExamination(Options{Endpoint: endpoint})
			e.server.members = members
			Expect(e.canLogIn(GinkgoT().Context(), client)).To(Equal(expected))
		},
		Entry("a document where documents are accepted", public, document,
			map[string]any{"client_id_metadata_document_supported": true}, able),
		Entry("a document where none are accepted", public, document, map[string]any{}, noDocuments),
		Entry("a document where only registration works", public, document,
			map[string]any{"registration_endpoint": "https://cms.example/r"}, mayRegister),
		Entry("registration where it works", public, registering,
			map[string]any{"registration_endpoint": "https://cms.example/r"}, able),
		Entry("registration where only documents are accepted", public, registering,
			map[string]any{"client_id_metadata_document_supported": true}, unregistered),
		Entry("a secret where none are issued", public, KnownClient{NeedsSecret: true},
			map[string]any{"registration_endpoint": "https://cms.example/r"}, needSecret),
		Entry("a secret where some are issued", public, KnownClient{NeedsSecret: true}, map[string]any{
			"registration_endpoint":                 "https://cms.example/r",
			"token_endpoint_auth_methods_supported": []any{"none", "client_secret_post"},
		}, able),
		Entry("a client on servers of its maker", public, KnownClient{Document: document.Document, RunsAtMaker: true},
			map[string]any{"client_id_metadata_document_supported": true}, able),
		Entry("such a client and a server on this computer", local,
			KnownClient{Document: document.Document, RunsAtMaker: true},
			map[string]any{"client_id_metadata_document_supported": true}, outOfReach),
	)

	It("is asked with a redirect URI on the web or this computer", func() {
		Expect(webRedirect([]string{"app:/back", "http://127.0.0.1/back", "https://client.example/back"})).
			To(Equal("http://127.0.0.1/back"))
		Expect(webRedirect([]string{"app:/back"})).To(Equal("app:/back"))
	})
})
