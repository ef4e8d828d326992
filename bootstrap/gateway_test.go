package bootstrap_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Opening a gateway in a host", Label("U6", "F9"), func() {
	const url = "http://127.0.0.1:9000/mcp"
	to := bootstrap.Upstream{URL: url}
	open := func(inUse bool, to bootstrap.Upstream, config bootstrap.GatewayConfig) error {
		host := openHost(oauth.Config{Issuer: "https://cms.example", HostTokenInUse: inUse}, openStore(), nil)
		_, err := bootstrap.NewGateway(to, config, bootstrap.WithOAuth(host.authz))
		return err
	}

	It("needs only a URL when access tokens can open the host token", func() {
		Expect(open(true, to, bootstrap.GatewayConfig{})).To(Succeed())
		Expect(open(false, to, bootstrap.GatewayConfig{Credential: bootstrap.CredentialNone})).To(Succeed())
	})

	It("needs an OAuth server", func() {
		_, err := bootstrap.NewGateway(to, bootstrap.GatewayConfig{})
		Expect(err).To(MatchError(ContainSubstring("pass WithOAuth to NewGateway")))
	})

	DescribeTable("fails, with the remedy, when", func(inUse bool, to bootstrap.Upstream,
		config bootstrap.GatewayConfig, remedy string) {
		Expect(open(inUse, to, config)).To(MatchError(ContainSubstring(remedy)))
	},
		Entry("access tokens cannot open the host token", false, to, bootstrap.GatewayConfig{},
			"set HostTokenInUse"),
		Entry("the URL is missing", true, bootstrap.Upstream{}, bootstrap.GatewayConfig{}, "it is not a URL"),
		Entry("tokens would be sent without encryption over the internet", true,
			bootstrap.Upstream{URL: "http://192.0.2.1/mcp"}, bootstrap.GatewayConfig{}, "use https"),
		Entry("the credential is unknown", true, to, bootstrap.GatewayConfig{Credential: "basic"}, "choose one of"),
		Entry("static has no signing secret", true,
			to, bootstrap.GatewayConfig{Credential: bootstrap.CredentialStatic, Secret: "x"}, "32 bytes or more"),
		Entry("a header is never forwarded", true, to, bootstrap.GatewayConfig{Headers: []string{"Cookie"}},
			"it is never forwarded"),
	)

	It("names the fields of the struct, not of the service", func() {
		err := open(true, to, bootstrap.GatewayConfig{
			Host:     "http://localhost",
			Headers:  []string{"Cookie"},
			Patience: time.Millisecond,
			Present:  []string{"X-Key: {nothing}"},
		})
		Expect(err).To(MatchError(And(MatchRegexp(`(?m)(^|: )Patience is 1ms`), MatchRegexp(`(?m)^Host has`),
			MatchRegexp(`(?m)^Headers has`), MatchRegexp(`(?m)(^|: )Present: `), Not(ContainSubstring("Gateway.")))))
		err = open(true, bootstrap.Upstream{Command: "sh", Env: map[string]string{"K": "{token}"}},
			bootstrap.GatewayConfig{MaxProcesses: -1})
		Expect(err).To(MatchError(HaveSuffix(": MaxProcesses is -1: choose 1 or more")))
	})
})
