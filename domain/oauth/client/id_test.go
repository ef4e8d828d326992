package client_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

var _ = Describe("Reading a client_id", Label("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"), func() {
	rules := rulesOf()
	rulesAt := func(issuer string, development bool) *client.Rules {
		return rulesOf(func(config *oauth.Config) {
			config.Issuer, config.AllowLoopbackClients = issuer, development
		})
	}

	DescribeTable("accepts", func(raw string) {
		id, err := rules.ParseID(raw)
		Expect(err).NotTo(HaveOccurred())
		Expect(id.String()).To(Equal(raw))
	},
		Entry(nil, "https://claude.ai/oauth/claude-code-client-metadata"), Entry(nil, "https://c.example/"),
		Entry(nil, "https://c.example/x?y=1"),
		Entry(nil, "https://c.example:443/x"), Entry(nil, "https://C.Example/x"),
		Entry(nil, "https://xn--bcher-kva.example/x"), Entry(nil, "https://c.example/%252e%252e/x"),
		Entry(nil, "https://c.example/a..b/x"),
	)

	It("refuses", func() {
		for _, raw := range []string{
			"", "https://", "client", "http://c.example/x", "HTTPS://c.example/x", " https://c.example/x",
			"https://c.example", "https://c.example?x=/y", "https:///x", "https://u@c.example/x",
			"https://@c.example/x", "https://c.example/x#", "https://c.example/x#y", `https://c.example\x/y`,
			"https://c.example/ä", "https://c.example/\x7f", "https://c.example/./x", "https://c.example/../x",
			"https://c.example/a/.%2e/x", "https://c.example/%2E%2e", "https://c.example/x/.",
			"https://c.example:8443/x", "https://c.example:/x", "https://c.example:80/x", "https://localhost/x",
			"https://a.localhost/x", "https://intranet/x", "https://printer.local/x", "https://x.internal/x",
			"https://r.home.arpa/x", "https://x.onion/x", "https://x.test/x", "https://x.invalid/x",
			"https://X.TEST/x", "https://127.0.0.1/x", "https://127.1/x", "https://2130706433/x", "https://0x7f.1/x",
			"https://0x7f.0x1/x", "https://[::1]/x", "https://c.example./x", "https://-c.example/x",
			"https://c_d.example/x", "https://c..example/x", "https://cms.example/x", "https://cms.example:443/x",
			"https://CMS.example/x", "https://c.example/" + strings.Repeat("x", 2048), "https://c.example/%2",
			`https://c.example/"%2f../x`,
		} {
			_, err := rules.ParseID(raw)
			Expect(err).To(Refused(oauth.MalformedClientID), raw)
		}
	})

	It("waives what development needs, and nothing more", Label("C49"), func() {
		dev := rulesAt("http://127.0.0.1:8080", true)
		for _, allowed := range []string{
			"https://127.0.0.1:8443/client.json", "https://127.0.0.1/client.json", "http://127.0.0.1:8443/client.json",
			"http://localhost:1/c", "http://[::1]/client.json",
		} {
			Expect(dev.ParseID(allowed)).Error().NotTo(HaveOccurred(), allowed)
			Expect(rulesAt("http://127.0.0.1:8080", false).ParseID(allowed)).Error().
				To(Refused(oauth.MalformedClientID), allowed)
		}
		for _, refused := range []string{
			"http://client.example/c", "http://127.0.0.2:8443/c", "http://localhost.example/c", "http://127.1:8443/c",
			"http://ann@127.0.0.1/c", "http://127.0.0.1:8443", "HTTP://127.0.0.1/c",
		} {
			Expect(dev.ParseID(refused)).Error().To(Refused(oauth.MalformedClientID), refused)
		}
	})

	It("says outside development that a document has to be on https", Label("C1", "C49"), func() {
		_, err := rules.ParseID("http://127.0.0.1:8443/client.json")
		Expect(oauth.RefusalOf(err).Rule).To(Equal("C1"))
	})

	It("refuses this server itself in development too", Label("C9", "C49"), func() {
		dev := rulesAt("http://127.0.0.1:8080", true)
		for _, own := range []string{"http://127.0.0.1:8080/oauth/authorize?client_id=x", "http://localhost:8080/c",
			"http://[::1]:8080/c", "https://127.0.0.1:8080/c"} {
			_, err := dev.ParseID(own)
			Expect(oauth.RefusalOf(err).Rule).To(Equal("C9"), own)
		}
	})

	It("accepts exactly the ids of the clients whose documents it publishes", Label("C60"), func() {
		own := rulesOf(func(config *oauth.Config) {
			config.HostedClients = []oauth.HostedClient{
				{Path: "doctor", Name: "Doctor", RedirectURIs: []string{"http://127.0.0.1/cb"}}}
		})
		Expect(own.ParseID("https://cms.example/oauth/documents/doctor")).To(HaveField("Host()", "cms.example"))
		for _, other := range []string{"https://cms.example/oauth/documents/local",
			"https://cms.example/oauth/documents/doctor/", "https://cms.example/oauth/documents/doctor?x"} {
			_, err := own.ParseID(other)
			Expect(oauth.RefusalOf(err).Rule).To(Equal("C9"), other)
		}
	})
})
