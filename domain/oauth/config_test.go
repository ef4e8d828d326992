package oauth

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Configuring the server", Label("F9"), func() {
	It("has a default for everything but the issuer and the verifier", func() {
		settings := settingsOf()
		Expect(settings.Resources[0].Resource.String()).To(Equal("https://cms.example/mcp"))
		Expect([]time.Duration{settings.AccessTokenTTL, settings.AuthCodeTTL, settings.RefreshIdleTTL,
			settings.GrantTTL, settings.RefreshGrace, TicketTTL}).
			To(Equal([]time.Duration{time.Hour, 5 * time.Minute, 720 * time.Hour, 4320 * time.Hour, 5 * time.Minute,
				10 * time.Minute}))
	})

	It("reports every mistake at once, by name and with the remedy", func() {
		_, err := Config{
			Issuer:         "https://CMS.example/",
			Secret:         []byte("short"),
			AccessTokenTTL: time.Second,
			AuthCodeTTL:    time.Hour,
			Scopes:         []Scope{{Name: "a b"}},
			DefaultScopes:  []string{"c"},
			RefreshGrace:   2 * time.Hour,
		}.Settings()
		for _, name := range []string{"Issuer", "VerifyBearer", "Secret", "AccessTokenTTL", "AuthCodeTTL", "Scopes",
			"DefaultScopes", "RefreshGrace"} {
			Expect(err).To(MatchError(MatchRegexp(`(^configuration: |\n)` + name + " ")))
		}
	})

	It("can be checked before the issuer, the verifier and the secret are known", func() {
		Expect(Config{}.Check()).To(Succeed())
		Expect(Config{AccessTokenTTL: time.Second, Resource: "https://cms.example/mcp"}.Check()).
			To(MatchError("AccessTokenTTL is 1s: choose from 1m0s to 24h0m0s"))
		Expect(Config{GrantTTL: 2 * time.Hour, GrantChoices: []time.Duration{time.Hour, 3 * time.Hour}}.Check()).
			To(MatchError("GrantChoices has 3h0m0s: choose from 1h0m0s to 2h0m0s, the longest time of a grant"))
		Expect(Config{RefreshTokens: "never"}.Check()).
			To(MatchError(`RefreshTokens is "never": choose requested or registered`))
		Expect(Config{Resource: "/odd"}.Check()).To(MatchError(HavePrefix(`Resource "/odd" is not an absolute URL`)))
		Expect(Config{Issuer: "https://cms.example", Resource: "/odd"}.Check()).
			To(MatchError(HavePrefix(`Resource "/odd" is not an absolute URL`)))
		_, err := Config{}.Settings()
		Expect(err).To(MatchError(And(ContainSubstring("Issuer is empty"), ContainSubstring("VerifyBearer is nil"),
			ContainSubstring("Now or Random is nil"), ContainSubstring("Secret has 0 bytes"))))
	})

	DescribeTable("refuses an issuer", func(issuer string) {
		config := Config{
			Issuer:              issuer,
			AllowLoopbackIssuer: true,
			VerifyBearer:        func(string) bool { return true },
			Secret:              make([]byte, 32),
		}
		Expect(strings.Join(texts(config.WithDefaults().checkURLs()), "\n")).To(ContainSubstring("Issuer"))
	},
		Entry("that is missing", ""), Entry("that is relative", "/x"), Entry("over http", "http://cms.example"),
		Entry("with a slash at its end", "https://cms.example/"),
		Entry("with a query", "https://cms.example?x"), Entry("with a fragment", "https://cms.example#"),
		Entry("with a user", "https://u@cms.example"),
		Entry("in capitals", "https://CMS.example"), Entry("with a quote", `https://cms.example/"`),
		Entry("with another scheme", "ftp://cms.example"),
		Entry("over http at a name that looks local", "http://localhost.evil.example"),
	)

	DescribeTable("takes further servers", Label("U1"), func(more ...string) {
		Expect(mistakesWith("https://cms.example/mcp", more)).To(BeEmpty())
	},
		Entry("at other paths", "https://cms.example/more", "https://cms.example/mcp/more", "https://cms.example/MCP"),
		Entry("at other hosts", "https://other.example/mcp", "https://other.example"),
	)

	DescribeTable("refuses a further server", Label("U1"), func(said, first string, more ...string) {
		Expect(mistakesWith(first, more)).To(ConsistOf(HavePrefix("MoreServers " + said)))
	},
		Entry("without an address", `"" is not an absolute URL`, "https://cms.example/mcp", ""),
		Entry("over http", `"http://cms.example/more" is not https`, "https://cms.example/mcp",
			"http://cms.example/more"),
		Entry("at the first one's address", `"https://cms.example/mcp" is the same as`, "https://cms.example/mcp",
			"https://cms.example/mcp"),
		Entry("at the first one's address, written in another way", `"https://cms.example:443/mcp" is the same as`,
			"https://cms.example/mcp", "https://cms.example:443/mcp"),
		Entry("at the address of one before it",
			`"https://cms.example/a" is the same as "https://cms.example/a": choose`, "https://cms.example/mcp",
			"https://cms.example/a", "https://cms.example/a"),
		Entry("at a message address", `"https://cms.example/mcp/message" is the message address of`,
			"https://cms.example/mcp", "https://cms.example/mcp/message"),
		Entry("whose message address is taken",
			`"https://cms.example/mcp" has as its message address "https://cms.example/mcp/message"`,
			"https://cms.example/mcp/message", "https://cms.example/mcp"),
		Entry("among the endpoints", `"https://cms.example/oauth/mcp" is an address of this server itself`,
			"https://cms.example/mcp", "https://cms.example/oauth/mcp"),
		Entry("among the documents", `"https://cms.example/.well-known/mcp" is an address of this server itself`,
			"https://cms.example/mcp", "https://cms.example/.well-known/mcp"),
		Entry("that is the whole site, as the first one is", `"https://cms.example" is the same as`,
			"https://cms.example", "https://cms.example"),
		Entry("that is the whole site beside the first one",
			`"https://cms.example" has the metadata address that the first server has too: make it Resource`,
			"https://cms.example/mcp", "https://cms.example"),
	)

	It("names servers after the issuer that have no name", Label("U1"), func() {
		settings := settingsOf(func(c *Config) {
			c.ResourceName, c.MoreServers = "First",
				[]ProtectedServer{{Resource: "https://cms.example/a"}, {Resource: "https://cms.example/b", Name: "B"}}
		})
		Expect(settings.Resources).To(HaveExactElements(
			And(HaveField("Resource.String()", "https://cms.example/mcp"), HaveField("Name", "First")),
			And(HaveField("Resource.String()", "https://cms.example/a"), HaveField("Name", "cms.example")),
			And(HaveField("Resource.String()", "https://cms.example/b"), HaveField("Name", "B")),
		))
	})

	It("adds the path to a name that several servers share", Label("U1"), func() {
		settings := settingsOf(func(c *Config) {
			c.MoreServers = []ProtectedServer{{Resource: "https://cms.example/a"},
				{Resource: "https://other.example/b", Name: "B"}, {Resource: "https://more.example/b", Name: "B"}}
		})
		var names []string
		for _, server := range settings.Resources {
			names = append(names, server.Name)
			Expect(settings.NameOf(server.Resource)).To(Equal(server.Name))
		}
		Expect(names).To(Equal([]string{"cms.example (/mcp)", "cms.example (/a)", "B (https://other.example/b)",
			"B (https://more.example/b)"}))
		Expect(settings.NameOf(NewResource("https://cms.example/gone"))).To(BeEmpty())
	})

	It("takes http on this computer only when told to", func() {
		config := Config{Issuer: "http://127.0.0.1:8080"}.WithDefaults()
		Expect(config.checkURLs()).NotTo(BeEmpty())
		config.AllowLoopbackIssuer = true
		Expect(config.checkURLs()).To(BeEmpty())
	})

	It("keeps the development relaxation on this computer", Label("C49"), func() {
		config := Config{Issuer: "https://cms.example", AllowLoopbackClients: true}.WithDefaults()
		Expect(texts(config.checkURLs())).To(ContainElement(ContainSubstring("AllowLoopbackClients")))
	})
})

func mistakesWith(first string, more []string) []string {
	config := Config{Issuer: "https://cms.example", Resource: first}
	for _, address := range more {
		config.MoreServers = append(config.MoreServers, ProtectedServer{Resource: address})
	}
	return texts(config.WithDefaults().checkURLs())
}

func texts(errs []error) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
