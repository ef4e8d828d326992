package oauth

import (
	"crypto/rand"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Approving the same form again", Label("B13", "I5"), func() {
	settings := settingsOf()
	ticket := func() *Ticket {
		request, err := ask(settings)
		Expect(err).NotTo(HaveOccurred())
		t, err := NewTicket(request, rand.Reader, noon)
		Expect(err).NotTo(HaveOccurred())
		return t
	}
	host := func(text string) HostToken {
		token, err := ParseHostToken(text)
		Expect(err).NotTo(HaveOccurred())
		return token
	}
	approve := func(t *Ticket, code Secret, at time.Time) *AuthorizationCode {
		issued, err := IssueCode(Approval{
			Ticket:    t,
			Host:      host("host-token"),
			Principal: Principal{Subject: "ann"},
			Code:      code,
			Random:    rand.Reader,
		}, settings, at)
		Expect(err).NotTo(HaveOccurred())
		return issued
	}

	It("has the same code for the same form and token, and another for any other", Label("H1", "J2"), func() {
		form := ticket()
		code := func(keys seal.KeyRing, t *Ticket, token string) Digest {
			secret, err := t.Code(host(token), nil, keys)
			Expect(err).NotTo(HaveOccurred())
			_, err = ParseSecret(CodeSecret, secret.Reveal(), keys)
			Expect(err).NotTo(HaveOccurred())
			return secret.Digest()
		}
		newest, before := []byte("the new secret of this server, 2"), []byte("the old secret of this server, 1")
		rotated := seal.NewKeyRing(seal.FixedSecrets{newest, before})
		first := code(rotated, form, "host-token")
		Expect(code(seal.NewKeyRing(seal.FixedSecrets{newest}), form, "host-token")).To(Equal(first))
		Expect(code(rotated, form, "host-token2")).NotTo(Equal(first))
		Expect(code(rotated, ticket(), "host-token")).NotTo(Equal(first))
		Expect(code(seal.NewKeyRing(seal.FixedSecrets{before}), form, "host-token")).NotTo(Equal(first))
	})

	It("leaves a code that still holds, replaces one that has expired or has another value, and refuses one that was "+
		"withdrawn", func() {
		form, code := ticket(), newSecret(CodeSecret)
		earlier := approve(form, code, noon)
		Expect(approve(form, code, noon.Add(settings.AuthCodeTTL-time.Millisecond)).Supersedes(earlier)).
			To(MatchError(ErrCodeStillValid))
		Expect(approve(form, code, noon.Add(settings.AuthCodeTTL)).Supersedes(earlier)).To(Succeed())
		Expect(approve(form, newSecret(CodeSecret), noon).Supersedes(earlier)).To(Succeed())
		earlier.End(EndedByHost, noon)
		Expect(approve(form, code, noon).Supersedes(earlier)).To(Refused(UsedTicket))
	})
})
