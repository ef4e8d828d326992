package oauth

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Refreshing a grant", func() {
	var settings *Settings
	BeforeEach(func() {
		settings = settingsOf(func(c *Config) {
			c.Scopes = []Scope{{Name: "mcp"}, {Name: "mcp:admin"}}
			c.DefaultScopes = []string{"mcp", "mcp:admin"}
			c.RecheckEvery = time.Minute
		})
	})
	broad := func(p Parameters) { p["scope"] = []string{"mcp mcp:admin offline_access"} }
	snapshot := func(f *family) GrantSnapshot { return f.grant.Snapshot() }
	narrowedTo := func(scopes ...string) Principal { return Principal{Subject: "ann", Scopes: scopes} }

	It("refuses a scope that the site has withdrawn, and does not rotate", Label("D24", "B10"), func() {
		f := redeemed(settings, broad)
		by := f.refreshment(f.refresh)
		by.Scope, by.Principal = "mcp:admin", narrowedTo("mcp")
		_, err := f.grant.Refresh(by, settings, noon)
		Expect(err).To(Refused(InvalidScope))
		Expect(snapshot(f).Generation).To(BeEquivalentTo(1))
		by.Scope = ""
		tokens, err := f.grant.Refresh(by, settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(tokens.Scopes.String()).To(Equal("mcp offline_access"))
	})

	It("refuses an access token after the site has withdrawn all its scopes", Label("G7", "B10"), func() {
		f := redeemed(settings, broad)
		by := f.refreshment(f.refresh)
		by.Scope = "mcp:admin"
		tokens, err := f.grant.Refresh(by, settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.grant.Admits(tokens.Access, settings.Resources[0].Resource, noon)).
			To(HaveField("Scopes.String()", "mcp:admin"))
		f.grant.RecordVerification(narrowedTo("mcp"), settings, noon)
		_, err = f.grant.Admits(tokens.Access, settings.Resources[0].Resource, noon)
		Expect(err).To(Refused(InvalidToken))
	})

	DescribeTable("grants all scopes to a request for offline_access only, which allows no call",
		Label("A25", "D18", "D24"), func(scope string) {
			f := approved(settings, broad)
			by := f.redemption()
			by.Scope = scope
			grant, tokens, err := f.issued.Redeem(by, settings, noon)
			Expect(err).NotTo(HaveOccurred())
			Expect(tokens.Scopes.String()).To(Equal("mcp mcp:admin offline_access"))
			again := f.refreshment(tokens.Refresh)
			again.Scope = scope
			tokens, err = grant.Refresh(again, settings, noon)
			Expect(err).NotTo(HaveOccurred())
			Expect(tokens.Scopes.String()).To(Equal("mcp mcp:admin offline_access"))
		}, Entry(nil, "offline_access"), Entry(nil, " offline_access  offline_access "))

	It("keeps the later of two verdicts of the site, in any order of arrival", Label("J8", "J6"), func() {
		f := redeemed(settings)
		f.grant.RecordVerification(Principal{Subject: "ann", Roles: []string{"reader"}}, settings,
			noon.Add(4*time.Second))
		f.grant.RecordVerification(Principal{Subject: "ann", Roles: []string{"editor"}}, settings,
			noon.Add(2*time.Second))
		Expect(snapshot(f)).To(And(HaveField("Roles", "reader"), HaveField("VerifiedAt", noon.Add(4*time.Second))))
	})

	It("rechecks after the clock went back", Label("J8", "I23"), func() {
		f := redeemed(settings)
		Expect(f.grant.NeedsRecheck(f.access, settings, noon)).To(BeFalse())
		Expect(f.grant.NeedsRecheck(f.access, settings, noon.Add(-time.Hour))).To(BeTrue())
		f.grant.RecordVerification(Principal{Subject: "ann", Roles: []string{"reader"}}, settings, noon.Add(-time.Hour))
		Expect(snapshot(f)).To(And(HaveField("Roles", "reader"), HaveField("VerifiedAt", noon.Add(-time.Hour))))
	})

	It("does not change a grant that ended during the recheck", Label("I18", "J8"), func() {
		f := redeemed(settings)
		f.grant.End(EndedByHost, noon)
		before := snapshot(f)
		f.grant.RecordVerification(Principal{Subject: "ann", Roles: []string{"reader"}}, settings,
			noon.Add(time.Minute))
		Expect(snapshot(f)).To(Equal(before))
	})
})

var _ = Describe("Passing the sealed host token on", Label("J4"), func() {
	online := func(p Parameters) { p["scope"] = []string{"mcp"} }
	sendingOn := func() *Settings { return settingsOf(func(c *Config) { c.HostTokenInUse = true }) }

	It("to the refresh token, so that the code cannot unseal it any more", func() {
		settings := settingsOf()
		f := redeemed(settings)
		snapshot := f.grant.Snapshot()
		kept := sealedHostToken{box: snapshot.HostBox, wrap: snapshot.HostWrap}
		_, err := kept.open(f.code, snapshot.ID, settings.Keys)
		Expect(err).To(MatchError(ErrHostTokenLost))
		Expect(f.grant.UnsealWithRefreshToken(f.refresh, settings)).To(HaveField("Reveal()", "host-token"))
	})

	It("to no token when there is no refresh token, and deletes it", Label("J3"), func() {
		f := redeemed(settingsOf(), online)
		snapshot := f.grant.Snapshot()
		Expect([][]byte{snapshot.HostBox, snapshot.HostWrap}).To(HaveEach(BeNil()))
	})

	It("to the access token alone if the host token is rechecked during use", Label("J8"), func() {
		settings := settingsOf(func(c *Config) { c.RecheckEvery = time.Minute })
		f := redeemed(settings, online)
		snapshot := f.grant.Snapshot()
		Expect(snapshot.HostBox).NotTo(BeNil())
		Expect(snapshot.HostWrap).To(BeNil(), "with which the code would open it")
		Expect(f.grant.UnsealWithAccessToken(f.access, settings)).To(HaveField("Reveal()", "host-token"))
	})

	DescribeTable("to each access token if it is sent to the upstream", Label("J3", "J5", "U6"), func(scope string) {
		settings := sendingOn()
		f := redeemed(settings, func(p Parameters) { p["scope"] = []string{scope} })
		Expect(f.grant.UnsealWithAccessToken(f.access, settings)).To(HaveField("Reveal()", "host-token"))
		Expect(f.grant.NeedsRecheck(f.access, settings, noon.Add(time.Hour))).To(BeFalse(), "rechecks are off")
		if f.refresh == (Secret{}) {
			return
		}
		for range 2 { // the second is answered with the successor of the first
			tokens, err := f.grant.Refresh(f.refreshment(f.refresh), settings, noon)
			Expect(err).NotTo(HaveOccurred())
			Expect(f.grant.UnsealWithAccessToken(tokens.Access, settings)).To(HaveField("Reveal()", "host-token"))
		}
	}, Entry("with refresh tokens", "mcp offline_access"), Entry("without refresh tokens", "mcp"))

	It("to the next access token of an older grant, not to the existing one", Label("J5", "U6"), func() {
		f := redeemed(settingsOf())
		later := sendingOn()
		_, err := f.grant.UnsealWithAccessToken(f.access, later)
		Expect(err).To(MatchError(ErrHostTokenLost))
		tokens, err := f.grant.Refresh(f.refreshment(f.refresh), later, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.grant.UnsealWithAccessToken(tokens.Access, later)).To(HaveField("Reveal()", "host-token"))
	})

	It("to no access token that is revoked", Label("E7", "H6"), func() {
		f := redeemed(settingsOf(func(c *Config) { c.RecheckEvery = time.Minute }))
		f.grant.Revoke(f.access, clientURL, noon)
		Expect(f.grant.findAccess(f.access).Wrap).To(BeNil())
	})
})
