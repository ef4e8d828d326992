package storespec

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func adding(w *world) {
	It("returns ErrNotFound for a code that it does not have", func(ctx SpecContext) {
		w.issued(ctx)
		stranger := secret(oauth.CodeSecret)
		w.expectUnknown(ctx, stranger)
		_, err := w.redeem(ctx, stranger, func() {})
		Expect(err).To(MatchError(oauth.ErrNotFound))
	})

	It("returns ErrDuplicate for a new code whose value is taken, and keeps none of it", func(ctx SpecContext) {
		value := w.issued(ctx)
		before := w.code(ctx, value)
		Expect(w.store.AddCode(ctx, bareCode("another", value), never)).To(MatchError(oauth.ErrDuplicate))
		Expect(w.code(ctx, value)).To(Equal(before))
		Expect(w.store.AddCode(ctx, bareCode("another", secret(oauth.CodeSecret)), never)).To(Succeed())
	})

	Context("when there is a code with the same id", func() {
		var first, second *oauth.AuthorizationCode
		var firstValue, secondValue oauth.Secret
		var ticket *oauth.Ticket
		BeforeEach(func(ctx SpecContext) {
			ticket = w.ticket()
			first, firstValue = w.issue(ticket, "host token")
			second, secondValue = w.issue(ticket, "host token")
			Expect(w.store.AddCode(ctx, first, never)).To(Succeed())
		})

		It("replaces it if it may be superseded", Label("B13", "I5"), func(ctx SpecContext) {
			var asked oauth.CodeSnapshot
			Expect(w.store.AddCode(ctx, second, func(earlier *oauth.AuthorizationCode) error { asked = earlier.Snapshot(); return nil })).To(Succeed())
			Expect(asked).To(Equal(first.Snapshot()))
			w.expectUnknown(ctx, firstValue)
			Expect(w.code(ctx, secondValue)).To(Equal(second.Snapshot()))
		})

		It("replaces it by one with the same value", Label("B13"), func(ctx SpecContext) {
			third := w.issueAs(ticket, "another host token", firstValue)
			Expect(w.store.AddCode(ctx, third, agree)).To(Succeed())
			Expect(w.code(ctx, firstValue)).To(Equal(third.Snapshot()))
			_, err := w.redeem(ctx, firstValue, func() {})
			Expect(err).NotTo(HaveOccurred())
		})

		It("leaves everything as it was if it may not", func(ctx SpecContext) {
			refuse := func(*oauth.AuthorizationCode) error { return errRefused }
			Expect(w.store.AddCode(ctx, second, refuse)).To(MatchError(errRefused))
			w.expectUnknown(ctx, secondValue)
			Expect(w.code(ctx, firstValue)).To(Equal(first.Snapshot()))
		})

		It("leaves everything as it was if the value of the new one is taken", func(ctx SpecContext) {
			taken := w.issued(ctx)
			Expect(w.store.AddCode(ctx, bareCode(first.ID(), taken), agree)).To(MatchError(oauth.ErrDuplicate))
			Expect(w.code(ctx, firstValue)).To(Equal(first.Snapshot()))
			Expect(w.code(ctx, taken).ID).NotTo(Equal(first.ID()))
		})
	})
}

func redeeming(w *world) {
	It("keeps the spent code and the new grant together", Label("I2"), func(ctx SpecContext) {
		value, tokens := w.active(ctx)
		Expect(w.code(ctx, value)).To(And(HaveField("State", "redeemed"), HaveField("RedeemedAt", w.now)))
		grant := w.read(ctx, tokens.Access)
		Expect(grant).To(And(HaveField("State", "active"), HaveField("ID", w.code(ctx, value).ID)))
		Expect(w.read(ctx, tokens.Refresh)).To(Equal(grant))
	})

	It("keeps neither when the redemption is refused", Label("I3"), func(ctx SpecContext) {
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

	It("returns ErrDuplicate for a grant with a token that is taken, and keeps neither", func(ctx SpecContext) {
		_, others := w.active(ctx)
		theirs := w.read(ctx, others.Refresh)
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
		Expect(w.read(ctx, others.Refresh)).To(Equal(theirs))
	})
}
