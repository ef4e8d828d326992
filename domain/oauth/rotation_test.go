package oauth

import (
	"crypto/rand"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

// lostSecrets is a keeper that cannot say just now.
type lostSecrets struct{}

var errLostSecrets = errors.New("the disk is gone")

func (lostSecrets) Secrets() ([][]byte, error) { return nil, errLostSecrets }

var _ = Describe("Changing the server secret", Label("J2"), func() {
	old, fresh := []byte("the old secret of this server, 1"), []byte("the new secret of this server, 2")
	under := func(secrets ...[]byte) *Settings {
		return settingsOf(func(c *Config) { c.Secret, c.PreviousSecrets = secrets[0], secrets[1:] })
	}
	before, during, after := under(old), under(fresh, old), under(fresh)
	host := func() HostToken {
		token, err := ParseHostToken("host-token")
		Expect(err).NotTo(HaveOccurred())
		return token
	}()

	It("leaves forms good, and seals new ones with the new secret alone", Label("B4", "B17"), func() {
		sealed := func(settings *Settings) string {
			form, err := SealReturn(Redirect{Location: "https://client.example/"}, settings, noon)
			Expect(err).NotTo(HaveOccurred())
			return form
		}
		for _, form := range []string{sealed(before), sealed(during)} {
			_, err := OpenReturn(form, during, noon)
			Expect(err).NotTo(HaveOccurred())
		}
		_, err := OpenReturn(sealed(during), before, noon)
		Expect(err).To(Refused(InvalidTicket))
		_, err = OpenReturn(sealed(before), after, noon)
		Expect(err).To(Refused(InvalidTicket))
	})

	It("opens boxes for their holder, and hands them on under the new secret", Label("J5"), func() {
		holder, next := newSecret(RefreshTokenSecret), newSecret(RefreshTokenSecret)
		box, err := sealHostToken(host, holder, "grant", rand.Reader, before.Keys)
		Expect(err).NotTo(HaveOccurred())
		handed, err := box.rewrapFor(holder, next, "grant", during.Keys)
		Expect(err).NotTo(HaveOccurred())
		Expect(handed.open(next, "grant", after.Keys)).To(HaveField("HostToken", host))
		_, err = box.open(holder, "grant", after.Keys)
		Expect(err).To(MatchError(ErrHostTokenLost))
	})

	It("knows a host token by every fingerprint, the new one first", Label("J10"), func() {
		prints, err := during.Keys.Fingerprints(host)
		Expect(err).NotTo(HaveOccurred())
		one, err := after.Keys.Fingerprint(host)
		Expect(err).NotTo(HaveOccurred())
		other, err := before.Keys.Fingerprint(host)
		Expect(err).NotTo(HaveOccurred())
		Expect(prints).To(Equal([]Fingerprint{one, other}))
		sealed, err := SealConnections(prints, host, during, noon)
		Expect(err).NotTo(HaveOccurred())
		found, pasted, err := OpenConnections(sealed, after, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(Equal(prints))
		Expect(pasted.Reveal()).To(Equal(host.Reveal()))
	})

	It("holds a list of connections from before for too old, because it does not find the grants that were made since",
		Label("J10"), func() {
			prints, err := before.Keys.Fingerprints(host)
			Expect(err).NotTo(HaveOccurred())
			sealed, err := SealConnections(prints, host, before, noon)
			Expect(err).NotTo(HaveOccurred())
			_, _, err = OpenConnections(sealed, before, noon)
			Expect(err).NotTo(HaveOccurred())
			_, _, err = OpenConnections(sealed, during, noon)
			kind, _ := KindOf(err)
			Expect(kind).To(Equal(ExpiredTicket))
		})

	It("is not a refusal while the secrets cannot be read", Label("D30"), func() {
		lost := *before
		lost.Keys = seal.NewKeyRing(lostSecrets{})
		code := approved(before)
		code.settings = &lost
		for name, try := range map[string]func() error{
			"box": func() error {
				_, err := (sealedHostToken{}).open(newSecret(CodeSecret), "grant", lost.Keys)
				return err
			},
			"form":   func() error { _, err := OpenReturn("AAAA", &lost, noon); return err },
			"print":  func() error { _, err := lost.Keys.Fingerprint(host); return err },
			"redeem": func() error { return code.redeem(noon) },
		} {
			err := try()
			_, refused := KindOf(err)
			Expect(err).To(And(MatchError(errLostSecrets), Not(MatchError(ErrHostTokenLost))), name)
			Expect(refused).To(BeFalse(), name)
		}
	})

	DescribeTable("is refused with a mistake", Label("F9"), func(change func(*Config), said string) {
		config := Config{
			Issuer:       "https://cms.example",
			VerifyBearer: func(string) bool { return true },
			Secret:       fresh,
			Now:          func() time.Time { return noon },
			Random:       rand.Reader,
		}
		change(&config)
		_, err := config.Settings()
		Expect(err).To(MatchError(ContainSubstring(said)))
	},
		Entry("in a previous secret", func(c *Config) {
			c.PreviousSecrets = [][]byte{old, []byte("short")}
		}, "PreviousSecrets has 5 bytes"),
		Entry("in the newest one", func(c *Config) {
			c.Secret = nil
			c.PreviousSecrets = [][]byte{old}
		}, "PreviousSecrets is set without Secret"),
		Entry("of a keeper", func(c *Config) {
			c.Secret = nil
			c.Secrets = lostSecrets{}
		}, "reading the server secrets: the disk is gone"),
		Entry("of a keeper whose secret is short", func(c *Config) {
			c.Secret = nil
			c.Secrets = seal.FixedSecrets{[]byte("short")}
		}, "Secret has 5 bytes"),
		Entry("that is missing", func(c *Config) { c.Secret = nil }, "Secret has 0 bytes"),
	)
})
