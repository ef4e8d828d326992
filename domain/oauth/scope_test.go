package oauth

import (
	"strings"
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Two servers with different scopes", Label("F21"), func() {
	other := NewResource("https://cms.example/files")
	scopes := func(c *Config) {
		c.Scopes = []Scope{{Name: "notes"}, {Name: "notes:write", Implies: []string{"notes"}}}
		c.MoreServers = []ProtectedServer{{Resource: other.String(), Scopes: []Scope{{Name: "files"}, {Name: "trash"}}}}
	}
	both := func(p Parameters) { p["scope"] = []string{"notes files trash offline_access"} }
	atOther := func(p Parameters) { p["resource"] = []string{other.String()} }

	It("grant a request for the scopes of both only their own, also at the refresh that repeats it", func() {
		settings := settingsOf(scopes, func(c *Config) { c.MoreServers[0].DefaultScopes = []string{"files", "trash"} })
		for granted, at := range map[string]func(Parameters){
			"files offline_access trash": atOther,
			"notes offline_access":       func(Parameters) {},
		} {
			f := redeemed(settings, both, at)
			Expect(f.grant.Scopes().String()).To(Equal(granted))
			by := f.refreshment(f.refresh)
			by.Scope = "notes files trash offline_access"
			tokens, err := f.grant.Refresh(by, settings, noon)
			Expect(err).NotTo(HaveOccurred())
			Expect(tokens.Scopes.String()).To(Equal(granted))
		}
	})

	It("refuse a request for those of the other server only, and grant their own default without one", func() {
		settings := settingsOf(scopes)
		_, err := ask(settings, atOther, func(p Parameters) { p["scope"] = []string{"notes"} })
		Expect(err).To(Refused(InvalidScope))
		request, err := ask(settings, atOther, func(p Parameters) { delete(p, "scope") })
		Expect(err).NotTo(HaveOccurred())
		Expect(request.Scopes.String()).To(Equal("files"))
		Expect(request.Chosen(&Choice{Scopes: NewScopes("trash")})).To(Equal(NewScopes("files")), "the first one")
	})

	It("give a token of the site the scopes of the server that it is sent to", func() {
		settings := settingsOf(scopes)
		may := Principal{Subject: "ann", Scopes: []string{"notes:write", "trash"}}
		Expect(settings.DirectCaller(Fingerprint{}, may, settings.Resources[0].Resource)).
			To(HaveField("Scopes.String()", "notes notes:write"))
		Expect(settings.DirectCaller(Fingerprint{}, may, other)).To(HaveField("Scopes.String()", "trash"))
		Expect(settings.DirectCaller(Fingerprint{}, Principal{}, other)).To(HaveField("Scopes.String()", "files"))
	})

	It("have the default scopes that the Config names for each", func() {
		settings := settingsOf(scopes, func(c *Config) {
			c.DefaultScopes, c.MoreServers[0].DefaultScopes = []string{"notes:write"}, []string{"files", "trash"}
			c.MoreServers = append(c.MoreServers, ProtectedServer{Resource: "https://cms.example/more"},
				ProtectedServer{Resource: "https://cms.example/less", DefaultScopes: []string{"notes"}})
		})
		var defaults []string
		for _, server := range settings.Resources {
			defaults = append(defaults, server.Scopes.Defaults().String())
		}
		Expect(defaults).To(Equal([]string{"notes:write", "files trash", "notes:write", "notes"}))
		Expect(settings.KnownScopes().String()).To(Equal("files notes notes:write offline_access trash"))
	})

	It("report a mistake in the scopes of one with its place", Label("F9"), func() {
		_, err := Config{MoreServers: []ProtectedServer{{}, {
			Scopes:        []Scope{{Name: "a b"}, {Name: "c", Implies: []string{"mcp"}}},
			DefaultScopes: []string{"mcp"},
		}}}.Settings()
		Expect(err).To(MatchError(And(ContainSubstring(`MoreServers[1].Scopes has "a b"`),
			ContainSubstring(`MoreServers[1].Scopes has "c", which implies the unknown "mcp"`),
			ContainSubstring(`MoreServers[1].DefaultScopes has "mcp": add it to the scopes`))))
	})
})

var _ = Describe("A scope parameter", Label("A23"), func() {
	It("lets a token that keeps it keep no more of the request", func() {
		request := "grant_type=refresh_token&scope=mcp&refresh_token=secret"
		_, after, _ := strings.Cut(request, "scope=")
		scopes, err := ParseScopes(after[:len("mcp")])
		Expect(err).NotTo(HaveOccurred())
		Expect(scopes.String()).To(Equal("mcp"))
		Expect(unsafe.StringData(scopes.String())).NotTo(BeIdenticalTo(unsafe.StringData(after)))
	})
})
