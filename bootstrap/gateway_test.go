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
	with := func(options bootstrap.UpstreamOptions) bootstrap.Upstream {
		return bootstrap.Upstream{URL: url, UpstreamOptions: options}
	}
	open := func(inUse bool, to bootstrap.Upstream) error {
		host := openHost(oauth.Config{Issuer: "https://cms.example", HostTokenInUse: inUse}, openStore(), nil)
		_, err := bootstrap.NewGateway(to, bootstrap.WithOAuth(host.authz))
		return err
	}

	It("needs only a URL when access tokens can open the host token", func() {
		Expect(open(true, bootstrap.Upstream{URL: url})).To(Succeed())
		Expect(open(false, with(bootstrap.UpstreamOptions{Credential: bootstrap.CredentialNone}))).To(Succeed())
	})

	It("needs an OAuth server", func() {
		_, err := bootstrap.NewGateway(bootstrap.Upstream{URL: url})
		Expect(err).To(MatchError(ContainSubstring("pass WithOAuth to NewGateway")))
	})

	DescribeTable("fails, with the remedy, when", func(inUse bool, to bootstrap.Upstream, remedy string) {
		Expect(open(inUse, to)).To(MatchError(ContainSubstring(remedy)))
	},
		Entry("access tokens cannot open the host token", false, bootstrap.Upstream{URL: url},
			"set HostTokenInUse"),
		Entry("the URL is missing", true, bootstrap.Upstream{}, "it is not a URL"),
		Entry("tokens would be sent without encryption over the internet", true,
			bootstrap.Upstream{URL: "http://192.0.2.1/mcp"}, "use https"),
		Entry("the credential is unknown", true, with(bootstrap.UpstreamOptions{Credential: "basic"}), "choose one of"),
		Entry("static has no signing secret", true,
			with(bootstrap.UpstreamOptions{Credential: bootstrap.CredentialStatic, Secret: "x"}), "32 bytes or more"),
		Entry("a header is never forwarded", true, with(bootstrap.UpstreamOptions{Headers: []string{"Cookie"}}),
			"it is never forwarded"),
	)

	It("names the fields of the struct, not of the service", func() {
		err := open(true, with(bootstrap.UpstreamOptions{
			Host:     "http://localhost",
			Headers:  []string{"Cookie"},
			Patience: time.Millisecond,
			Present:  []string{"X-Key: {nothing}"},
		}))
		Expect(err).To(MatchError(And(MatchRegexp(`(?m)(^|: )Patience is 1ms`), MatchRegexp(`(?m)^Host has`),
			MatchRegexp(`(?m)^Headers has`), MatchRegexp(`(?m)(^|: )Present: `), Not(ContainSubstring("Gateway.")))))
		err = open(true, bootstrap.Upstream{
			Program: &bootstrap.Program{Command: "sh", Env: map[string]string{"K": "{token}"}},
			UpstreamOptions: bootstrap.UpstreamOptions{
				ProgramLimits: bootstrap.ProgramLimits{MaxProcesses: -1},
			},
		})
		Expect(err).To(MatchError(HaveSuffix(": ProgramLimits.MaxProcesses is -1: choose 1 or more")))
	})
})
