package storespec

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func newCodes(w *world) {
	It("finds nothing for an unknown code", func(ctx SpecContext) {
		w.issued(ctx)
		w.expectUnknown(ctx, unknownID)
		_, err := w.redeem(ctx, w.secret(oauth.CodeSecret, unknownID), func() {})
		Expect(err).To(MatchError(oauth.ErrNotFound))
	})

	Context("with an earlier code of the same id", func() {
		var first, second *oauth.AuthorizationCode
		var firstValue oauth.Secret
		var ticket *oauth.Ticket
		BeforeEach(func(ctx SpecContext) {
			ticket = w.ticket()
			first, firstValue = w.issue(ticket, "host token")
			second, _ = w.issue(ticket, "host token")
			Expect(w.store.AddCode(ctx, first, noEarlierCode)).To(Succeed())
		})

		It("replaces it when supersede returns nil", Label("B13", "I5"), func(ctx SpecContext) {
			var superseded oauth.CodeSnapshot
			Expect(w.store.AddCode(ctx, second, func(earlier *oauth.AuthorizationCode) error {
				superseded = withoutVersion(earlier)
				return nil
			})).To(Succeed())
			Expect(superseded).To(Equal(withoutVersion(first)))
			Expect(w.code(ctx, firstValue)).To(Equal(withoutVersion(second)))
		})

		It("replaces it by a code with the same digest", Label("B13"), func(ctx SpecContext) {
			third := w.issueAs(ticket, "another host token", firstValue)
			Expect(w.store.AddCode(ctx, third, replace)).To(Succeed())
			Expect(w.code(ctx, firstValue)).To(Equal(withoutVersion(third)))
			_, err := w.redeem(ctx, firstValue, func() {})
			Expect(err).NotTo(HaveOccurred())
		})

		It("changes nothing when supersede returns an error", func(ctx SpecContext) {
			refuse := func(*oauth.AuthorizationCode) error { return errRefused }
			Expect(w.store.AddCode(ctx, second, refuse)).To(MatchError(errRefused))
			Expect(w.code(ctx, firstValue)).To(Equal(withoutVersion(first)))
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
		redeem := func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
			grant, _, err := c.Redeem(by, w.settings, w.now)
			return grant, errors.Join(err, errRefused)
		}
		Expect(w.store.RedeemCode(ctx, value.Grant(), redeem)).To(MatchError(errRefused))
		Expect(w.code(ctx, value)).To(Equal(before))
		_, err := w.store.Grant(ctx, value.Grant())
		Expect(err).To(MatchError(oauth.ErrNotFound))
	})
	It("redeems the newest code, whatever state the caller knows", Label("I14"), func(ctx SpecContext) {
		value := w.issued(ctx)
		known, err := w.store.Code(ctx, value.Grant())
		Expect(err).NotTo(HaveOccurred())
		_, err = w.redeem(ctx, value, func() {})
		Expect(err).NotTo(HaveOccurred())
		before := w.code(ctx, value)
		by := redemption(value)
		redeem := func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
			grant, _, err := c.Redeem(by, w.settings, w.now)
			return grant, err
		}
		of := oauth.Selection{Code: known.ID(), Known: &oauth.Authorizations{Codes: []*oauth.AuthorizationCode{known}}}
		Expect(w.store.redeem(ctx, of, redeem)).To(MatchError(oauth.ErrRetried))
		Expect(w.code(ctx, value)).To(Equal(before))
	})
}
