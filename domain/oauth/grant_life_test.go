package oauth

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("The life of a grant", func() {
	var settings *Settings
	BeforeEach(func() { settings = settingsOf() })
	snapshot := func(f *family) GrantSnapshot { return f.grant.Snapshot() }
	shown := func(f *family) Connection {
		connection, _ := f.grant.Connection(noon)
		return connection
	}

	It("stays on record for thirty days after its end", Label("H6"), func() {
		f := redeemed(settings)
		f.grant.End(EndedByHost, noon.Add(time.Hour))
		Expect(snapshot(f).ForgetAfter).To(Equal(noon.Add(time.Hour).AddDate(0, 0, 30)))
		Expect(f.grant.HostPrint()).NotTo(BeZero(), "other processes learn whose grant has ended")
	})

	Describe("whose token the site judges again", Label("J24"), func() {
		keyed := func() *family {
			GinkgoHelper()
			f := approved(settings)
			print, err := KeyedSubject(f.host, settings.Keys)
			Expect(err).NotTo(HaveOccurred())
			f.issued.subject = print
			Expect(f.redeem(noon)).To(Succeed())
			return f
		}
		reasonOf := func(f *family, principal Principal) EndReason { return f.grant.ReasonToEnd(principal, settings) }
		ann := Principal{Subject: "ann", Name: "Ann Example"}

		It("takes the name of the person in place of the fingerprint of the same token", func() {
			f := keyed()
			Expect(reasonOf(f, ann)).To(BeEmpty())
			f.grant.RecordVerification(ann, settings, noon.Add(time.Hour))
			Expect(shown(f)).To(And(HaveField("Subject", "ann"), HaveField("Account", "Ann Example")))
			Expect(reasonOf(f, ann)).To(BeEmpty())
			Expect(reasonOf(f, Principal{Subject: "bob"})).To(Equal(EndedByNewPerson))
		})

		It("ends for another person, also when their name has the form of a fingerprint", func() {
			f := redeemed(settings)
			Expect(reasonOf(f, Principal{Subject: "bob"})).To(Equal(EndedByNewPerson))
			for _, name := range []string{strings.Repeat("0a", len(Fingerprint{})), "token-12", "token"} {
				f = approved(settings)
				f.issued.subject = name
				Expect(f.redeem(noon)).To(Succeed())
				Expect(reasonOf(f, ann)).To(Equal(EndedByNewPerson))
			}
		})

		It("ends when the token no longer grants any of its scopes", func() {
			nothing := Principal{Subject: "ann", Scopes: []string{}}
			Expect(reasonOf(redeemed(settings), nothing)).To(Equal(EndedByLostScopes))
		})

		It("takes the name also from a token that has replaced its own", Label("J19"), func() {
			f := keyed()
			other, err := ParseHostToken("another-token")
			Expect(err).NotTo(HaveOccurred())
			by := NewReplacement(other, noon)
			by.Verified[settings.Resources[0].Resource] = Principal{}
			Expect(Authorizations{Grants: []*AccessGrant{f.grant}}.Replace(by, settings, noon)).To(Equal(1))
			Expect(reasonOf(f, ann)).To(BeEmpty())
			f.grant.RecordVerification(ann, settings, noon.Add(time.Hour))
			Expect(shown(f)).To(HaveField("Subject", "ann"))
		})

		It("takes no name while a token replaces its own", Label("J19"), func() {
			f := keyed()
			other, err := ParseHostToken("another-token")
			Expect(err).NotTo(HaveOccurred())
			by := NewReplacement(other, noon)
			by.Verified[settings.Resources[0].Resource] = ann
			_, err = Authorizations{Grants: []*AccessGrant{f.grant}}.Replace(by, settings, noon)
			Expect(err).To(Refused(OtherHostToken))
		})
	})

	It("has the id of its token from the newest verification, and of the token that replaces it", Label("J23"), func() {
		f := redeemed(settings)
		named := func(id string) Principal { return Principal{Subject: "ann", TokenID: id} }
		f.grant.RecordVerification(named("4711"), settings, noon.Add(time.Hour))
		f.grant.RecordVerification(named("older"), settings, noon.Add(time.Hour-time.Second))
		Expect(shown(f)).To(HaveField("TokenID", "4711"))
		by := NewReplacement(f.host, noon.Add(2*time.Hour))
		by.Verified[settings.Resources[0].Resource] = named("4712")
		_, err := Authorizations{Grants: []*AccessGrant{f.grant}}.Replace(by, settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(shown(f)).To(HaveField("TokenID", "4712"))
	})

	It("is on record to the end of the day in which its last refresh token is of no use", Label("H6"), func() {
		f := redeemed(settings)
		for _, after := range []time.Duration{time.Millisecond, 30 * time.Minute, 12 * time.Hour} {
			tokens, err := f.grant.Refresh(f.refreshment(f.refresh), settings, noon.Add(after))
			Expect(err).NotTo(HaveOccurred())
			f.refresh = tokens.Refresh
			Expect(snapshot(f).IdleEnd).To(Equal(noon.Add(after + settings.RefreshIdleTTL)))
			Expect(snapshot(f).ForgetAfter).To(Equal(noon.Add(12*time.Hour + settings.RefreshIdleTTL)))
		}
	})

	It("is over once it idled too long", Label("D23"), func() {
		f := redeemed(settings)
		Expect(f.grant.End(EndedByHost, noon.Add(settings.RefreshIdleTTL))).To(BeFalse())
		Expect(snapshot(f)).To(And(HaveField("HostBox", BeNil()), HaveField("State", "ended")))
		f = redeemed(settings)
		Expect(f.grant.End(EndedByHost, noon.Add(settings.RefreshIdleTTL-time.Millisecond))).To(BeTrue())
	})

	It("is prolonged by every refresh, but never past its absolute end", Label("I11", "D28"), func() {
		settings = settingsOf(func(c *Config) { c.GrantTTL = 40 * 24 * time.Hour })
		f, day := redeemed(settings), 24*time.Hour
		token := f.refresh
		for _, at := range []time.Duration{day, 20 * day} {
			tokens, err := f.grant.Refresh(f.refreshment(token), settings, noon.Add(at))
			Expect(err).NotTo(HaveOccurred())
			Expect(snapshot(f).IdleEnd).To(Equal(noon.Add(min(at+30*day, 40*day))))
			token = tokens.Refresh
		}
		Expect(snapshot(f).Generation).To(BeEquivalentTo(3))
		_, err := f.grant.Refresh(f.refreshment(token), settings, noon.Add(40*day))
		Expect(err).To(Refused(InvalidGrant))
	})

	It("seals the successor for the holder of the replaced token only", Label("J9"), func() {
		f := redeemed(settings)
		Expect(snapshot(f).Rotations).To(BeNil())
		next, err := f.grant.Refresh(f.refreshment(f.refresh), settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(snapshot(f).Rotations).
			To(HaveExactElements(HaveField("Box", Not(ContainSubstring(string(next.Refresh.content()))))))
		pair, _, err := f.grant.newestFor(f.refresh, settings.Keys)
		Expect(err).NotTo(HaveOccurred())
		Expect(pair.refresh.Reveal()).To(Equal(next.Refresh.Reveal()))
		Expect(pair.access.Reveal()).To(Equal(next.Access.Reveal()))
		kept := &f.grant.rotations[0]
		for _, stranger := range []Secret{next.Refresh, next.Access, newSecretOf(RefreshTokenSecret, f.grant.ID(), 1)} {
			_, err := kept.open(stranger, f.grant.ID(), settings.Keys)
			Expect(err).To(MatchError(ErrHostTokenLost))
			_, _, err = f.grant.newestFor(stranger, settings.Keys)
			Expect(err).To(MatchError(ErrHostTokenLost))
		}
	})
})

var _ = Describe("Sealing the host token", Label("J12"), func() {
	settings := settingsOf()

	sealed := func(holder Secret, grant string) sealedHostToken {
		GinkgoHelper()
		host, err := ParseHostToken("host-token")
		Expect(err).NotTo(HaveOccurred())
		box, err := sealHostToken(host, holder, grant, rand.Reader, settings.Keys)
		Expect(err).NotTo(HaveOccurred())
		return box
	}

	It("is opened by every later version as it was sealed once", Label("J2", "J9", "J10"), func() {
		bytesOf := func(text string) []byte {
			GinkgoHelper()
			decoded, err := hex.DecodeString(text)
			Expect(err).NotTo(HaveOccurred())
			return decoded
		}
		holder := Secret{confidential: conceal("ppc_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")}
		host, err := sealedHostToken{
			box: bytesOf("10b9478bc7289136ab50d86fa350e48d78bfa8ed0c3272143bb9c08796553ef67f79569876b5"),
			wrap: bytesOf("1bb926018f328fb4f9d49dead0f792d81f251ab0e28a3f3fb7a77d772ba8f7bc" +
				"1a8aa20bc76dd0f38698c2811876a0a881cc7f0fa5f81c0ac709c24e"),
		}.open(holder, "grant", settings.Keys)
		Expect(err).NotTo(HaveOccurred())
		Expect(host.Reveal()).To(Equal("host-token"))
		succession, err := successorSealers(holder, "grant", settings.Keys)
		Expect(err).NotTo(HaveOccurred())
		Expect(succession.Open(
			bytesOf("cda1bdf5f74d0f689eb19d3e353aba0c9b8b305ac5bade7e5c099b34a97f2d3777bba3a23c6d0e6500"))).
			To(BeEquivalentTo("ppr_successor"))
		print, err := settings.Keys.Fingerprint(host.HostToken)
		Expect(err).NotTo(HaveOccurred())
		Expect(print[:]).To(Equal(bytesOf("b8a7dec2d7f0517a58ee81dbb3974aaf")))
		code, err := (&Ticket{id: someGrant}).Code(host.HostToken, nil, settings.Keys)
		Expect(err).NotTo(HaveOccurred())
		Expect(code.Reveal()).
			To(Equal("ppc_ASNFZ4mrze8BI0VniavN7wAAAAChqn_-TjdHN425L039b6hJV9_9ZwL_ygRMfuMRE04mFa0HjcpKp0ib"))
	})

	It("never makes the same box twice", func() {
		holder := newSecret(CodeSecret)
		one, two := sealed(holder, "grant"), sealed(holder, "grant")
		Expect(one.box).NotTo(Equal(two.box))
		Expect(one.wrap).NotTo(Equal(two.wrap))
		Expect(one.box).To(HaveLen(len("host-token") + 12 + 16)) // nonce and tag of AES-GCM
	})

	DescribeTable("makes boxes that open only",
		func(spoil func(h *sealedHostToken, holder *Secret, grant *string, keys *seal.KeyRing)) {
			holder, grant, keys := newSecret(CodeSecret), "grant", settings.Keys
			box := sealed(holder, grant)
			_, err := box.open(holder, grant, keys)
			Expect(err).NotTo(HaveOccurred())
			spoil(&box, &holder, &grant, &keys)
			_, err = box.open(holder, grant, keys)
			Expect(err).To(MatchError(ErrHostTokenLost))
		},
		Entry("for their holder", func(_ *sealedHostToken, holder *Secret, _ *string, _ *seal.KeyRing) {
			*holder = newSecret(CodeSecret)
		}),
		Entry("for a holder of the kind", func(_ *sealedHostToken, holder *Secret, _ *string, _ *seal.KeyRing) {
			*holder = Secret{confidential: conceal(string(RefreshTokenSecret) + holder.Reveal()[4:])}
		}),
		Entry("in their grant", func(_ *sealedHostToken, _ *Secret, grant *string, _ *seal.KeyRing) {
			*grant = "another"
		}),
		Entry("with the server's secret",
			Label("J11"), func(_ *sealedHostToken, _ *Secret, _ *string, keys *seal.KeyRing) {
				*keys = seal.NewKeyRing(seal.FixedSecrets{append(make([]byte, MinSecretLength), 1)})
			}),
		Entry("unchanged", func(h *sealedHostToken, _ *Secret, _ *string, _ *seal.KeyRing) { h.box[20] ^= 1 }),
		Entry("with their own key", func(h *sealedHostToken, holder *Secret, grant *string, _ *seal.KeyRing) {
			h.wrap = sealed(*holder, *grant).wrap
		}),
	)
})
