package oauth

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

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
