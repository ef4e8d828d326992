package client_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/features/suite"
)

func TestClient(t *testing.T) { suite.Run(t, "The rules for clients") }

// Refused matches a refusal of the kind.
func Refused(kind oauth.Kind) types.GomegaMatcher {
	return WithTransform(func(err error) string {
		found, _ := oauth.KindOf(err)
		return found.String()
	}, Equal(kind.String()))
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func rulesOf(change ...func(*oauth.Config)) *client.Rules {
	GinkgoHelper()
	config := oauth.Config{Issuer: "https://cms.example", Secret: []byte("a secret that is not only zeroes")}
	for _, apply := range change {
		apply(&config)
	}
	rules, err := client.NewRules(config)
	Expect(err).NotTo(HaveOccurred())
	return rules
}

const clientURL = "https://client.example/client.json"

func document(change ...func(map[string]any)) map[string]any {
	members := map[string]any{
		"client_id": clientURL, "client_name": "Client",
		"redirect_uris": []any{"https://client.example/callback", "http://localhost/callback"},
	}
	for _, apply := range change {
		apply(members)
	}
	return members
}

var _ = Describe("Configuring the rules for clients", Label("F9"), func() {
	It("reports every mistake at once", func() {
		_, err := client.NewRules(oauth.Config{
			Issuer:                "https://cms.example",
			AllowedPrivateSchemes: []string{"javascript", "cursor", "Cursor"},
			HostedClients:         []oauth.HostedClient{{Path: "app"}},
		})
		Expect(err).To(MatchError(And(ContainSubstring(`AllowedPrivateSchemes has "javascript"`),
			ContainSubstring(`AllowedPrivateSchemes has "Cursor"`), ContainSubstring("HostedClients: the client"))))
	})

	DescribeTable("refuses a hosted client", Label("C60", "F9"), func(said string, clients ...oauth.HostedClient) {
		_, err := client.NewRules(oauth.Config{Issuer: "https://cms.example", HostedClients: clients})
		Expect(err).To(MatchError(And(HavePrefix("HostedClients"), ContainSubstring(said))))
	},
		Entry("with an https redirect", "not on loopback",
			oauth.HostedClient{Path: "app", Name: "App",
				RedirectURIs: []string{"http://127.0.0.1/cb", "https://app.example/cb"}}),
		Entry("with an http redirect elsewhere", "not on loopback",
			oauth.HostedClient{Path: "app", Name: "App",
				RedirectURIs: []string{"http://127.0.0.1/cb", "http://app.example/cb"}}),
		Entry("without a redirect", "redirect_uris", oauth.HostedClient{Path: "app", Name: "App"}),
		Entry("without a name", "client_name",
			oauth.HostedClient{Path: "app", RedirectURIs: []string{"http://127.0.0.1/cb"}}),
		Entry("with slashes in its path", `"a/b"`,
			oauth.HostedClient{Path: "a/b", Name: "App", RedirectURIs: []string{"http://127.0.0.1/cb"}}),
		Entry("with the path of another", "twice",
			oauth.HostedClient{Path: "a", Name: "A", RedirectURIs: []string{"http://127.0.0.1/"}},
			oauth.HostedClient{Path: "a", Name: "B", RedirectURIs: []string{"http://127.0.0.1/"}}),
	)
})
