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
		Expect(settings.Resource.String()).To(Equal("https://cms.example/mcp"))
		Expect([]time.Duration{settings.AccessTokenTTL, settings.AuthCodeTTL, settings.RefreshIdleTTL, settings.GrantTTL, settings.RefreshGrace, settings.TicketTTL}).
			To(Equal([]time.Duration{time.Hour, 5 * time.Minute, 720 * time.Hour, 4320 * time.Hour, time.Minute, 10 * time.Minute}))
	})

	It("reports every mistake at once, by name and with the remedy", func() {
		_, err := Config{
			Issuer: "https://CMS.example/", Secret: []byte("short"), AccessTokenTTL: time.Second, AuthCodeTTL: time.Hour,
			Scopes: []Scope{{Name: "a b"}}, DefaultScopes: []string{"c"}, AllowedPrivateSchemes: []string{"javascript"}, RefreshGrace: time.Hour,
		}.Settings()
		for _, name := range []string{"Issuer", "VerifyBearer", "Secret", "AccessTokenTTL", "AuthCodeTTL", "Scopes", "DefaultScopes", "AllowedPrivateSchemes", "RefreshGrace"} {
			Expect(err).To(MatchError(MatchRegexp(`(^configuration: |\n)` + name + " ")))
		}
	})

	DescribeTable("refuses an issuer", func(issuer string) {
		config := Config{Issuer: issuer, AllowLoopbackIssuer: true, VerifyBearer: func(string) bool { return true }, Secret: make([]byte, 32)}
		Expect(strings.Join(texts(config.withDefaults().checkURLs()), "\n")).To(ContainSubstring("Issuer"))
	},
		Entry("that is missing", ""), Entry("that is relative", "/x"), Entry("over http", "http://cms.example"), Entry("with a slash at its end", "https://cms.example/"),
		Entry("with a query", "https://cms.example?x"), Entry("with a fragment", "https://cms.example#"), Entry("with a user", "https://u@cms.example"),
		Entry("in capitals", "https://CMS.example"), Entry("with a quote", `https://cms.example/"`), Entry("with another scheme", "ftp://cms.example"), Entry("over http at a name that looks local", "http://localhost.evil.example"),
	)

	It("takes http on this computer only when told to", func() {
		config := Config{Issuer: "http://127.0.0.1:8080"}.withDefaults()
		Expect(config.checkURLs()).NotTo(BeEmpty())
		config.AllowLoopbackIssuer = true
		Expect(config.checkURLs()).To(BeEmpty())
	})

	It("keeps the development relaxation on this computer", Label("C49"), func() {
		config := Config{Issuer: "https://cms.example", AllowLoopbackClients: true}.withDefaults()
		Expect(texts(config.checkURLs())).To(ContainElement(ContainSubstring("AllowLoopbackClients")))
	})
})

func texts(errs []error) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
