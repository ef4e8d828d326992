package oauth

import (
	"crypto/rand"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("An authorization code", func() {
	var settings *Settings
	BeforeEach(func() { settings = settingsOf() })

	It("opens its grant once, with what the person approved", Label("I1", "I2"), func() {
		f := approved(settings)
		Expect(f.redeem(noon.Add(time.Minute))).To(Succeed())
		Expect(f.grant.ID()).To(Equal(f.issued.ID()))
		snapshot := f.grant.Snapshot()
		Expect(snapshot).
			To(And(HaveField("State", "active"), HaveField("CreatedAt", noon), HaveField("VerifiedAt", noon),
				HaveField("Subject", "ann"),
				HaveField("Roles", "editor"), HaveField("AbsoluteEnd", noon.Add(settings.GrantTTL)),
				HaveField("Generation", BeEquivalentTo(1))))
		Expect(f.grant.UnsealWithRefreshToken(f.refresh, settings)).To(HaveField("Reveal()", "host-token"))
	})

	It("keeps no sealed host token once it is redeemed", Label("I2", "I10", "J4"), func() {
		f := approved(settings)
		Expect(f.issued.Snapshot().HostBox).NotTo(BeNil())
		Expect(f.redeem(noon)).To(Succeed())
		Expect(f.issued.Snapshot()).
			To(And(HaveField("HostBox", BeNil()), HaveField("HostWrap", BeNil()), HaveField("State", "redeemed")))
	})

	It("tells a retry from a replay", Label("D19"), func() {
		f := approved(settings)
		Expect(f.redeem(noon)).To(Succeed())
		Expect(f.redeem(noon.Add(codeRetryWindow))).To(And(Refused(InvalidGrant), MatchError(ErrRetried)))
		Expect(f.redeem(noon.Add(codeRetryWindow + time.Millisecond))).
			To(And(Refused(InvalidGrant), MatchError(ErrReplayed)))
	})

	It("is worth nothing once it is withdrawn, and keeps no sealed host token", Label("I8", "I10", "D21"), func() {
		f := approved(settings)
		Expect(f.issued.End(EndedByHost, noon)).To(BeTrue())
		Expect(f.issued.End(EndedByPerson, noon)).To(BeFalse())
		Expect(f.issued.Snapshot()).
			To(And(HaveField("HostBox", BeNil()), HaveField("HostWrap", BeNil()), HaveField("State", "withdrawn"),
				HaveField("EndReason", "ended_by_host")))
		Expect(f.redeem(noon)).To(Refused(InvalidGrant))
	})

	It("is not withdrawn any more once it is redeemed or has expired", Label("I4"), func() {
		f := approved(settings)
		Expect(f.redeem(noon)).To(Succeed())
		Expect(f.issued.End(EndedByHost, noon)).To(BeFalse())
		Expect(f.issued.Snapshot().State).To(Equal("redeemed"))
		late := approved(settings)
		Expect(late.issued.End(EndedByHost, noon.Add(settings.AuthCodeTTL))).To(BeFalse())
		Expect(late.issued.Snapshot().HostBox).To(BeNil())
	})

	DescribeTable("stays on record",
		Label("H6", "D19"), func(change func(*family), after func(*Settings) time.Duration) {
			f := approved(settings)
			change(f)
			Expect(f.issued.Snapshot().ForgetAfter).To(Equal(noon.Add(after(settings))))
		},
		Entry("until it expires", func(*family) {}, func(s *Settings) time.Duration { return s.AuthCodeTTL }),
		Entry("for a day after its redemption", func(f *family) {
			Expect(f.redeem(noon.Add(time.Second))).To(Succeed())
		},
			func(*Settings) time.Duration { return 24*time.Hour + time.Second }),
		Entry("for thirty days after it was withdrawn", func(f *family) {
			f.issued.End(EndedByHost, noon.Add(time.Second))
		},
			func(*Settings) time.Duration { return 30*24*time.Hour + time.Second }),
		Entry("until it would have expired, when it was withdrawn for the limit", Label("J14"), func(f *family) {
			f.issued.End(EndedByLimit, noon)
		},
			func(s *Settings) time.Duration { return s.AuthCodeTTL }),
	)

	DescribeTable("gives at most what the host token may grant",
		Label("B10"), func(ceiling []string, granted string) {
			settings = settingsOf(func(c *Config) {
				c.Scopes = []Scope{{Name: "mcp"}, {Name: "mcp:admin", Implies: []string{"mcp"}}}
			})
			request, err := ask(settings, func(p Parameters) { p["scope"] = []string{"mcp mcp:admin offline_access"} })
			Expect(err).NotTo(HaveOccurred())
			ticket, err := NewTicket(request, rand.Reader, noon)
			Expect(err).NotTo(HaveOccurred())
			code, err := IssueCode(Approval{
				Ticket:    ticket,
				Host:      HostToken{conceal("x")},
				Principal: Principal{Scopes: ceiling},
				Code:      newSecret(CodeSecret),
				Random:    rand.Reader,
			}, settings, noon)
			if granted == "" {
				Expect(err).To(Refused(AccessDenied))
				return
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(code.Scopes().String()).To(Equal(granted))
		},
		Entry("the defaults when it says nothing", nil, "mcp offline_access"),
		Entry("all that it names", []string{"mcp:admin"}, "mcp mcp:admin offline_access"),
		Entry("nothing when it names nothing", []string{}, ""),
	)
})
