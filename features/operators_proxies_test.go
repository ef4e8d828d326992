package features_test

import (
	"crypto/rand"
	"net/http"
	"net/netip"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// behind returns a world that trusts proxies in these networks.
func behind(networks ...string) func(*service.Config) {
	return func(config *service.Config) {
		for _, network := range networks {
			config.TrustedProxies = append(config.TrustedProxies, netip.MustParsePrefix(network))
		}
	}
}

// forwarded sets one X-Forwarded-For header per value.
func forwarded(values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header["X-Forwarded-For"] = values }
}

var _ = Describe("Trusting proxies", Label("operations", "B6"), func() {
	DescribeTable("logs the address",
		func(ctx SpecContext, trusted []string, change func(*http.Request), address string) {
			world := NewWorld(behind(trusted...))
			Post(ctx, world.Issuer+"/oauth/token", url.Values{}, change)
			Expect(world.Log.String()).To(ContainSubstring(`"address":"` + address + `"`))
		},
		Entry("of the peer when other networks are trusted", []string{"10.0.0.0/8"}, forwarded("203.0.113.7"),
			"127.0.0.1"),
		Entry("that a proxy in front of the proxy names", []string{"127.0.0.1/32", "10.0.0.0/8"},
			forwarded("203.0.113.7, 10.1.2.3"), "203.0.113.7"),
		Entry("of the last untrusted hop, despite a trusted address before it", []string{"127.0.0.1/32", "10.0.0.0/8"},
			forwarded("198.51.100.1, 10.1.2.3, 203.0.113.7"), "203.0.113.7"),
		Entry("of an untrusted loopback address", []string{"127.0.0.1/32"}, forwarded("203.0.113.7, 127.0.0.2"),
			"127.0.0.2"),
		Entry("of the proxy when the last value is invalid", []string{"127.0.0.1/32"},
			forwarded("203.0.113.7, unknown"), "127.0.0.1"),
		Entry("that the proxy names in Forwarded", []string{"127.0.0.1/32"},
			with("Forwarded", `for="203.0.113.7:5555";proto=https`), "203.0.113.7"),
		Entry("of the peer, and ignores other headers", []string{"127.0.0.1/32"}, with("X-Real-Ip", "203.0.113.7"),
			"127.0.0.1"),
	)

	It("counts wrong tokens by the forwarded address", func(ctx SpecContext) {
		operated := Operate(behind("127.0.0.1/32"))
		client := operated.NewClient()
		operated.Clock.Stop()
		guess := func(address, token string) int {
			page := client.Consent(ctx)
			return Post(ctx, page.Action,
				url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"approve"}, "bearer_token": {token}},
				forwarded(address)).StatusCode
		}
		slowed := func() string { return operated.AskAdmin(ctx, "/metrics").Text }
		for range freeGuesses + 1 {
			Expect(guess("203.0.113.7", "demo_wrong"+rand.Text())).To(Equal(http.StatusForbidden))
		}
		Expect(guess("198.51.100.1", operated.Token)).To(Equal(http.StatusSeeOther))
		Expect(slowed()).To(ContainSubstring(`pasteport_limits_total{effect="slowed",limit="wrong_tokens"} 0`))
		Expect(guess("198.51.100.1, 203.0.113.7", "demo_wrong")).To(Equal(http.StatusForbidden))
		Expect(slowed()).To(ContainSubstring(`pasteport_limits_total{effect="slowed",limit="wrong_tokens"} 1`))
	})

	It("lets doctor on the same computer find a proxy that is not listed", Label("doctor"), func(ctx SpecContext) {
		service := Operate()
		Expect(service.diagnose(ctx).Out).NotTo(ContainSubstring("trusted-proxies"))
		Post(ctx, service.Issuer+"/oauth/token", url.Values{}, forwarded("203.0.113.7"))
		found := service.diagnose(ctx)
		Expect(found.Of("upstream").Seen).To(ContainSubstring("set trusted-proxies: 127.0.0.1"), found.Out)
		listed := Operate(behind("127.0.0.1/32"))
		Post(ctx, listed.Issuer+"/oauth/token", url.Values{}, forwarded("203.0.113.7"))
		Expect(listed.diagnose(ctx).Out).NotTo(ContainSubstring("trusted-proxies"))
	})

	DescribeTable("refuses to start with", func(ctx SpecContext, written, complaint string) {
		ran := Run(ctx, "serve", "--dev", "--addr", "127.0.0.1:0", "--admin-addr", "off", "--trusted-proxies", written,
			"--data", GinkgoT().TempDir())
		Expect(ran.Code).To(Equal(1))
		Expect(ran.Err).To(ContainSubstring(complaint))
	},
		Entry("a host name", "proxy.example",
			`"proxy.example": write a list of networks such as 10.0.0.0/8, or addresses`),
		Entry("an IPv4-mapped IPv6 network", "::ffff:10.0.0.0/104", "networks such as 10.0.0.0/8"),
		Entry("all of IPv4", "0.0.0.0/0", "name the networks of your own proxies"),
	)
})

var _ = Describe("Logging", Label("operations", "H8"), func() {
	It("adds a request id to every log line of a request, and returns it", func(ctx SpecContext) {
		world := NewWorld()
		client := world.NewClient()
		page := client.Consent(ctx)
		answer := Post(ctx, page.Action, url.Values{"ticket": {page.Hidden.Get("ticket")}, "decision": {"deny"}},
			with("X-Request-Id", "chosen-by-a-stranger"))
		id := answer.Header.Get("X-Request-Id")
		Expect(id).To(MatchRegexp(`^[A-Z2-7]{12}$`))
		Expect(linesWith(world.Log.String(), `"request":"`+id+`"`)).
			To(ConsistOf(ContainSubstring(`"msg":"consent_denied"`), ContainSubstring(`"msg":"request"`)))
		Expect(world.Log.String()).NotTo(ContainSubstring("chosen-by-a-stranger"))
	})
})
