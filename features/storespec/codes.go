package storespec

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func newCodes(w *world) {
	It("returns ErrNotFound for an unknown code", func(ctx SpecContext) {
		w.issued(ctx)
		stranger := secret(oauth.CodeSecret)
		w.expectUnknown(ctx, stranger)
		_, err := w.redeem(ctx, stranger, func() {})
		Expect(err).To(MatchError(oauth.ErrNotFound))
	})

	It("returns ErrDuplicate for a new code whose digest is taken, and stores nothing", func(ctx SpecContext) {
		value := w.issued(ctx)
		before := w.code(ctx, value)
		Expect(w.store.AddCode(ctx, minimalCode("another", value), noEarlierCode)).To(MatchError(oauth.ErrDuplicate))
		Expect(w.code(ctx, value)).To(Equal(before))
		Expect(w.store.AddCode(ctx, minimalCode("another", secret(oauth.CodeSecret)), noEarlierCode)).To(Succeed())
	})

	Context("with an earlier code of the same id", func() {
		var first, second *oauth.AuthorizationCode
		var firstValue, secondValue oauth.Secret
		var ticket *oauth.Ticket
		BeforeEach(func(ctx SpecContext) {
			ticket = w.ticket()
			first, firstValue = w.issue(ticket, "host token")
			second, secondValue = w.issue(ticket, "host token")
			Expect(w.store.AddCode(ctx, first, noEarlierCode)).To(Succeed())
		})

		It("replaces it when supersede returns nil", Label("B13", "I5"), func(ctx SpecContext) {
			var superseded oauth.CodeSnapshot
			Expect(w.store.AddCode(ctx, second, func(earlier *oauth.AuthorizationCode) error { superseded = earlier.Snapshot(); return nil })).To(Succeed())
			Expect(superseded).To(Equal(first.Snapshot()))
			w.expectUnknown(ctx, firstValue)
			Expect(w.code(ctx, secondValue)).To(Equal(second.Snapshot()))
		})

		It("replaces it by a code with the same digest", Label("B13"), func(ctx SpecContext) {
			third := w.issueAs(ticket, "another host token", firstValue)
			Expect(w.store.AddCode(ctx, third, replace)).To(Succeed())
			Expect(w.code(ctx, firstValue)).To(Equal(third.Snapshot()))
			_, err := w.redeem(ctx, firstValue, func() {})
			Expect(err).NotTo(HaveOccurred())
		})

		It("changes nothing when supersede returns an error", func(ctx SpecContext) {
			refuse := func(*oauth.AuthorizationCode) error { return errRefused }
			Expect(w.store.AddCode(ctx, second, refuse)).To(MatchError(errRefused))
			w.expectUnknown(ctx, secondValue)
			Expect(w.code(ctx, firstValue)).To(Equal(first.Snapshot()))
		})

		It("changes nothing when the digest of the new code is taken", func(ctx SpecContext) {
			taken := w.issued(ctx)
			Expect(w.store.AddCode(ctx, minimalCode(first.ID(), taken), replace)).To(MatchError(oauth.ErrDuplicate))
			Expect(w.code(ctx, firstValue)).To(Equal(first.Snapshot()))
			Expect(w.code(ctx, taken).ID).NotTo(Equal(first.ID()))
		})
	})
}

func redemptions(w *world) {
	It("stores the redeemed code and the new grant together", Label("I2"), func(ctx SpecContext) {
		value, tokens := w.active(ctx)
		Expect(w.code(ctx, value)).To(And(HaveField("State", "redeemed"), HaveField("RedeemedAt", w.now)))
		grant := w.grant(ctx, tokens.Access)
		Expect(grant).To(And(HaveField("State", "active"), HaveField("ID", w.code(ctx, value).ID)))
		Expect(w.grant(ctx, tokens.Refresh)).To(Equal(grant))
	})

	It("stores neither when the redemption is refused", Label("I3"), func(ctx SpecContext) {
		value := w.issued(ctx)
		before := w.code(ctx, value)
		by := redemption(value)
		Expect(w.store.RedeemCode(ctx, value.Digest(), func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
			grant, _, err := c.Redeem(by, w.settings, w.now)
			return grant, errors.Join(err, errRefused)
		})).To(MatchError(errRefused))
		w.expectUnknown(ctx, by.Access, by.Refresh)
		Expect(w.code(ctx, value)).To(Equal(before))
	})

	It("returns ErrDuplicate for a grant whose token is taken, and stores neither code nor grant", func(ctx SpecContext) {
		_, others := w.active(ctx)
		theirs := w.grant(ctx, others.Refresh)
		value := w.issued(ctx)
		before := w.code(ctx, value)
		by := redemption(value)
		by.Refresh = others.Refresh
		Expect(w.store.RedeemCode(ctx, value.Digest(), func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
			grant, _, err := c.Redeem(by, w.settings, w.now)
			return grant, err
		})).To(MatchError(oauth.ErrDuplicate))
		w.expectUnknown(ctx, by.Access)
		Expect(w.code(ctx, value)).To(Equal(before))
		Expect(w.grant(ctx, others.Refresh)).To(Equal(theirs))
	})
}
