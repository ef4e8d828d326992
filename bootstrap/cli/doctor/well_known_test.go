package doctor

import (
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Which well-known clients can log in", Label("T4"), func() {
	const public, local = "https://cms.example/mcp", "http://127.0.0.1:8080/mcp"
	document, registering := knownClient{document: "https://client.example/c.json"}, knownClient{}

	DescribeTable("depends on the metadata:",
		func(at string, client knownClient, members map[string]any, expected clientGroup) {
			endpoint, err := url.Parse(at)
			Expect(err).NotTo(HaveOccurred())
			e := newExamination(options{endpoint: endpoint}, nil)
			e.server.members = members
			Expect(e.canLogIn(GinkgoT().Context(), client)).To(Equal(expected))
		},
		Entry("a document", public, document, nil, able),
		Entry("registration where it works", public, registering,
			map[string]any{"registration_endpoint": "https://cms.example/r"}, able),
		Entry("registration where it is off", public, registering, nil, unregistered),
		Entry("a secret where none are issued", public, knownClient{needsSecret: true},
			map[string]any{"registration_endpoint": "https://cms.example/r"}, needSecret),
		Entry("a secret where some are issued", public, knownClient{needsSecret: true}, map[string]any{
			"registration_endpoint":                 "https://cms.example/r",
			"token_endpoint_auth_methods_supported": []any{"none", "client_secret_post"},
		}, able),
		Entry("a client on servers of its maker", public,
			knownClient{document: document.document, atMaker: true}, nil, able),
		Entry("such a client and a server on this computer", local,
			knownClient{document: document.document, atMaker: true}, nil, outOfReach),
	)

	It("is asked with a redirect URI on the web or this computer", func() {
		Expect(webRedirect([]string{"app:/back", "http://127.0.0.1/back", "https://client.example/back"})).
			To(Equal("http://127.0.0.1/back"))
		Expect(webRedirect([]string{"app:/back"})).To(Equal("app:/back"))
	})
})
