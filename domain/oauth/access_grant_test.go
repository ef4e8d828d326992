package oauth

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A grant", func() {
	var settings *Settings
	BeforeEach(func() { settings = settingsOf() })

	It("admits its caller once the code is redeemed", Label("I2", "I9", "G14"), func() {
		f := redeemed(settings)
		caller, err := f.grant.Admits(f.access, settings.Resources[0].Resource, noon.Add(time.Hour-time.Millisecond))
		Expect(err).NotTo(HaveOccurred())
		Expect(caller).To(Equal(Caller{
			Grant:      f.grant.ID(),
			Client:     RestoreClientID(clientURL),
			ClientName: "Client",
			Subject:    "ann",
			Account:    "ann",
			Roles:      []string{"editor"},
			Scopes:     NewScopes("mcp", "offline_access"),
			IssuedAt:   noon,
			ExpiresAt:  noon.Add(time.Hour),
		}))
	})

	DescribeTable("does not change when a copy changes", Label("I22"),
		func(change func(f *family, copied *AccessGrant)) {
			f := redeemed(settings)
			before := f.grant.Snapshot()
			expectAsBefore := func(grant *AccessGrant) {
				GinkgoHelper()
				Expect(grant.Snapshot()).To(Equal(before))
			}
			change(f, f.grant.Copy())
			expectAsBefore(f.grant)
			copied := f.grant.Copy()
			change(f, f.grant)
			expectAsBefore(copied)
		},
		Entry("its end", func(_ *family, copied *AccessGrant) { Expect(copied.End(EndedByHost, noon)).To(BeTrue()) }),
		Entry("the end of one token", func(f *family, copied *AccessGrant) {
			copied.Revoke(f.access, clientURL, noon)
		}),
		Entry("a refresh", func(f *family, copied *AccessGrant) {
			_, err := copied.Refresh(f.refreshment(f.refresh), settings, noon)
			Expect(err).NotTo(HaveOccurred())
		}),
		Entry("its use", func(_ *family, copied *AccessGrant) {
			copied.RecordUse(Use{At: noon.Add(time.Hour), Access: 1})
		}),
		Entry("what the site says of its person", func(_ *family, copied *AccessGrant) {
			copied.RecordVerification(Principal{Roles: []string{"reader"}, Scopes: []string{}}, settings,
				noon.Add(time.Hour))
		}),
	)

	DescribeTable("does not admit", func(spoil func(*family) (Secret, Resource, time.Time)) {
		f := redeemed(settings)
		_, err := f.grant.Admits(spoil(f))
		Expect(err).To(Refused(InvalidToken))
	},
		Entry("at the exact instant of expiry", Label("G7", "I20"), func(f *family) (Secret, Resource, time.Time) {
			return f.access, f.settings.Resources[0].Resource, noon.Add(time.Hour)
		}),
		Entry("at another resource", Label("G8"), func(f *family) (Secret, Resource, time.Time) {
			return f.access, NewResource("https://cms.example/other"), noon
		}),
		Entry("with a refresh token", Label("G7"), func(f *family) (Secret, Resource, time.Time) {
			return f.refresh, f.settings.Resources[0].Resource, noon
		}),
		Entry("with a token that is not its own", Label("G7"), func(f *family) (Secret, Resource, time.Time) {
			return newSecretOf(AccessTokenSecret, f.grant.ID(), 1), f.settings.Resources[0].Resource, noon
		}),
		Entry("after it has ended", Label("I12"), func(f *family) (Secret, Resource, time.Time) {
			f.grant.End(EndedByHost, noon)
			return f.access, f.settings.Resources[0].Resource, noon
		}),
		Entry("with a revoked token", Label("E7"), func(f *family) (Secret, Resource, time.Time) {
			f.grant.Revoke(f.access, clientURL, noon)
			return f.access, f.settings.Resources[0].Resource, noon
		}),
	)

	It("keeps no host token without offline_access", Label("J3", "J4"), func() {
		f := approved(settings, func(p Parameters) { p["scope"] = []string{"mcp"} })
		Expect(f.issued.Snapshot().HostBox).To(BeNil())
		Expect(f.redeem(noon)).To(Succeed())
		snapshot := f.grant.Snapshot()
		Expect(snapshot.HostBox).To(BeNil())
	})

	It("opens the sealed host token for the newest refresh token and those that still get it",
		Label("J5", "J6"), func() {
			f := redeemed(settings)
			tokens, err := f.grant.Refresh(f.refreshment(f.refresh), settings, noon)
			Expect(err).NotTo(HaveOccurred())
			for _, holder := range []Secret{tokens.Refresh, f.refresh} {
				host, err := f.grant.UnsealWithRefreshToken(holder, settings)
				Expect(err).NotTo(HaveOccurred())
				Expect(host.Reveal()).To(Equal("host-token"))
			}
			next, err := f.grant.Refresh(f.refreshment(tokens.Refresh), settings, noon)
			Expect(err).NotTo(HaveOccurred())
			_, err = f.grant.UnsealWithRefreshToken(next.Refresh, settings)
			Expect(err).NotTo(HaveOccurred())
			_, err = f.grant.UnsealWithRefreshToken(f.refresh, settings)
			Expect(err).NotTo(HaveOccurred())
			_, err = f.grant.Refresh(f.refreshment(next.Refresh), settings, noon.Add(settings.RefreshGrace))
			Expect(err).NotTo(HaveOccurred())
			_, err = f.grant.UnsealWithRefreshToken(f.refresh, settings)
			Expect(err).To(MatchError(ErrHostTokenLost))
		})

	DescribeTable("hands it on as the site was asked about it", func(opened func(f *family) *UnsealedHostToken) {
		f := redeemed(settings)
		by := f.refreshment(f.refresh)
		by.Host = opened(f)
		tokens, err := f.grant.Refresh(by, settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.grant.UnsealWithRefreshToken(tokens.Refresh, settings)).To(HaveField("Reveal()", "host-token"))
		_, err = f.grant.UnsealWithRefreshToken(f.refresh, settings)
		Expect(err).NotTo(HaveOccurred(), "the box leads to the successor")
	},
		Entry("with the key that has opened it", Label("J5"), func(f *family) *UnsealedHostToken {
			opened, err := f.grant.UnsealWithRefreshToken(f.refresh, settings)
			Expect(err).NotTo(HaveOccurred())
			return opened
		}),
		Entry("but never with the key of another box", Label("J5", "J12"), func(*family) *UnsealedHostToken {
			other := redeemed(settings)
			opened, err := other.grant.UnsealWithRefreshToken(other.refresh, settings)
			Expect(err).NotTo(HaveOccurred())
			return opened
		}),
		Entry("and never with a key that is forgotten", Label("J5", "J11"), func(f *family) *UnsealedHostToken {
			opened, err := f.grant.UnsealWithRefreshToken(f.refresh, settings)
			Expect(err).NotTo(HaveOccurred())
			opened.Forget()
			Expect(opened.dataKey).To(HaveEach(BeZero()))
			return opened
		}),
	)

	It("cannot open it with another server secret", Label("J6", "J11"), func() {
		f := redeemed(settings)
		other := settingsOf(func(c *Config) { c.Secret = append(make([]byte, MinSecretLength), 1) })
		_, err := f.grant.UnsealWithRefreshToken(f.refresh, other)
		Expect(err).To(MatchError(ErrHostTokenLost))
	})

	It("drops every box when it ends", Label("H6", "I12"), func() {
		f := redeemed(settings)
		_, err := f.grant.Refresh(f.refreshment(f.refresh), settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.grant.End(EndedByHost, noon)).To(BeTrue())
		Expect(f.grant.End(EndedByReuse, noon)).To(BeFalse())
		snapshot := f.grant.Snapshot()
		Expect([][]byte{snapshot.HostBox, snapshot.HostWrap}).To(HaveEach(BeNil()))
		Expect(snapshot.Rotations).To(BeNil())
		Expect(snapshot.AccessTokens).To(BeNil())
		Expect(snapshot.EndReason).To(Equal("ended_by_host"))
	})

	It("takes the caller's roles from the newest answer of the site", func() {
		f := redeemed(settings)
		tokens, err := f.grant.Refresh(f.refreshment(f.refresh), settings, noon)
		Expect(err).NotTo(HaveOccurred())
		caller, err := f.grant.Admits(tokens.Access, settings.Resources[0].Resource, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(caller.Roles).To(Equal([]string{"reader"}))
	})

	It("fails rather than issue when chance is exhausted", func() {
		request, err := ask(settings)
		Expect(err).NotTo(HaveOccurred())
		_, err = NewTicket(request, noChance{}, noon)
		Expect(err).To(MatchError(ContainSubstring("generating a ticket id")))
	})
})
