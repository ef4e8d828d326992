package oauth

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Reading a client_id", Label("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"), func() {
	rules := ClientIDRules{ForbidHost: "cms.example"}

	DescribeTable("accepts", func(raw string) {
		id, err := ParseClientID(raw, rules)
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
			_, err := ParseClientID(raw, rules)
			Expect(err).To(Refused(MalformedClientID), raw)
		}
	})

	It("waives what development needs, and nothing more", Label("C49"), func() {
		dev := ClientIDRules{AllowAnyHost: true, ForbidHost: "127.0.0.1:8080"}
		for _, allowed := range []string{
			"https://127.0.0.1:8443/client.json", "https://127.0.0.1/client.json", "http://127.0.0.1:8443/client.json",
			"http://localhost:1/c", "http://[::1]/client.json",
		} {
			Expect(ParseClientID(allowed, dev)).Error().NotTo(HaveOccurred(), allowed)
			Expect(ParseClientID(allowed, ClientIDRules{ForbidHost: "127.0.0.1:8080"})).Error().
				To(Refused(MalformedClientID), allowed)
		}
		for _, refused := range []string{
			"http://client.example/c", "http://127.0.0.2:8443/c", "http://localhost.example/c", "http://127.1:8443/c",
			"http://ann@127.0.0.1/c", "http://127.0.0.1:8443", "HTTP://127.0.0.1/c",
		} {
			Expect(ParseClientID(refused, dev)).Error().To(Refused(MalformedClientID), refused)
		}
	})

	It("says outside development that a document has to be on https", Label("C1", "C49"), func() {
		_, err := ParseClientID("http://127.0.0.1:8443/client.json", ClientIDRules{ForbidHost: "cms.example"})
		Expect(RuleOf(err)).To(Equal("C1"))
	})

	It("refuses this server itself in development too", Label("C9", "C49"), func() {
		dev := ClientIDRules{AllowAnyHost: true, ForbidHost: "127.0.0.1:8080"}
		for _, own := range []string{"http://127.0.0.1:8080/oauth/authorize?client_id=x", "http://localhost:8080/c",
			"http://[::1]:8080/c", "https://127.0.0.1:8080/c"} {
			_, err := ParseClientID(own, dev)
			Expect(RuleOf(err)).To(Equal("C9"), own)
		}
	})

	It("accepts exactly the ids of the clients whose documents it publishes", Label("C60"), func() {
		own := ClientIDRules{ForbidHost: "cms.example", Hosted: []string{"https://cms.example/oauth/documents/doctor"}}
		Expect(ParseClientID("https://cms.example/oauth/documents/doctor", own)).To(HaveField("Host()", "cms.example"))
		for _, other := range []string{"https://cms.example/oauth/documents/local",
			"https://cms.example/oauth/documents/doctor/", "https://cms.example/oauth/documents/doctor?x"} {
			_, err := ParseClientID(other, own)
			Expect(RuleOf(err)).To(Equal("C9"), other)
		}
	})
})

var _ = Describe("Comparing a resource", Label("A28", "A29", "A30", "A31", "A32"), func() {
	resource := NewResource("https://cms.example/mcp")

	It("accepts its spellings", func() {
		for _, requested := range []string{
			"https://cms.example/mcp", "https://cms.example/mcp/", "HTTPS://CMS.Example/mcp",
			"https://cms.example:443/mcp", "https://cms.example/mcp?read_only=true",
		} {
			Expect(resource.accepts([]string{requested})).To(Succeed(), requested)
			Expect(resource.accepts([]string{requested, "https://cms.example/mcp"})).To(Succeed(), requested)
		}
		Expect(resource.accepts(nil)).To(Succeed())
	})

	It("refuses every other text, also as one of two", func() {
		for _, requested := range []string{
			"https://cms.example", "https://cms.example/more?x=/mcp", "https://cms.example/MCP",
			"https://cms.example/mcp//", "http://cms.example/mcp", "https://cms.example:8443/mcp",
			"https://cms.example/mcp#", "mcp", "https://other.example/mcp", "https://cms.example/%6dcp",
			"https://cms.example/x/../mcp",
		} {
			Expect(resource.accepts([]string{requested})).To(Refused(InvalidTarget), requested)
			Expect(resource.accepts([]string{"https://cms.example/mcp", requested})).
				To(Refused(InvalidTarget), requested)
		}
	})
})

var _ = Describe("Proving a code challenge", Label("A19", "A20", "A21", "D12", "D16", "RFC 7636"), func() {
	It("accepts the verifier of RFC 7636 appendix B", func() {
		challenge, err := parseCodeChallenge("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "S256")
		Expect(err).NotTo(HaveOccurred())
		Expect(challenge.verifiedBy("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")).To(BeTrue())
	})
	DescribeTable("is not convinced by", func(offered string) {
		Expect(codeChallenge{challengeOf(offered)}.verifiedBy(offered)).To(BeFalse())
	},
		Entry("nothing", ""), Entry("42 characters", strings.Repeat("a", 42)),
		Entry("129 characters", strings.Repeat("a", 129)), Entry("a foreign character", strings.Repeat("a", 43)+"+"),
	)
})

var _ = Describe("Granting scopes", Label("A23", "A24", "A25", "A27"), func() {
	catalogue := ScopeCatalogue{known: []Scope{{Name: "mcp"}, {Name: "write", Implies: []string{"mcp"}},
		{Name: "admin", Implies: []string{"write"}}}, defaults: NewScopes("mcp")}

	DescribeTable("reduces", func(asked, granted string) {
		scopes, err := catalogue.resolve(asked)
		Expect(err).NotTo(HaveOccurred())
		Expect(scopes.String()).To(Equal(granted))
	},
		Entry("nothing to the defaults", "", "mcp"), Entry("unknown ones away", "mcp profile", "mcp"),
		Entry("duplicates and extra spaces away", " write  mcp write ", "mcp write"),
		Entry("nothing but scopes of OpenID to the defaults", "openid email", "mcp"),
		Entry("offline_access alone to the defaults with it", "offline_access", "mcp offline_access"),
		Entry("nothing that is known", "admin offline_access", "admin offline_access"),
	)
	DescribeTable("refuses", func(asked string) {
		_, err := catalogue.resolve(asked)
		Expect(err).To(Refused(InvalidScope))
	}, Entry("only unknown ones", "profile admin2"), Entry("other case", "MCP"), Entry("a tab", "mcp\twrite"),
		Entry("a quote", `"mcp"`), Entry("a backslash", `m\cp`), Entry("too much", strings.Repeat("x", 1025)))

	It("adds what a broad scope implies", func() {
		Expect(catalogue.Expand(NewScopes("admin")).String()).To(Equal("admin mcp write"))
	})
})

var _ = Describe("Repeating a parameter", Label("D5"), func() {
	DescribeTable("is refused, also when it is empty", func(values ...string) {
		Expect(Parameters{"code": values}.CheckNoneRepeated()).To(Refused(InvalidRequest))
	}, Entry(nil, "x", "x"), Entry(nil, "x", ""), Entry(nil, "", ""))

	It("is for resource only", func() {
		Expect(Parameters{"resource": {"a", "b"}, "code": {"x"}}.CheckNoneRepeated()).To(Succeed())
	})
})

var _ = Describe("Comparing a resource on this computer", Label("A30"), func() {
	It("drops the default port of http, and of http only", func() {
		local := NewResource("http://127.0.0.1/mcp")
		Expect(local.accepts([]string{"http://127.0.0.1:80/mcp"})).To(Succeed())
		Expect(local.accepts([]string{"http://127.0.0.1:443/mcp"})).To(Refused(InvalidTarget))
	})
})
