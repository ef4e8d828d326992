package storespec

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func finding(w *world) {
	It("finds a grant by each of its secrets", func(ctx SpecContext) {
		code, first := w.active(ctx)
		second, err := w.refresh(ctx, first.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		newest := w.read(ctx, second.Refresh)
		for _, secret := range []oauth.Secret{code, first.Access, first.Refresh, second.Access, second.Refresh} {
			digest := secret.Digest()
			Expect(w.read(ctx, secret)).To(Equal(newest))
			Expect(w.held(ctx, secret).Digest).To(Equal(digest[:]))
		}
	})

	It("says ErrNotFound for a secret that belongs to no grant", func(ctx SpecContext) {
		w.active(ctx)
		stranger := secret(oauth.AccessTokenSecret)
		w.expectUnknown(ctx, stranger)
		Expect(w.store.UpdateGrant(ctx, stranger.Digest(), never)).To(MatchError(oauth.ErrNotFound))
	})

	It("hands out copies that change nothing by themselves", func(ctx SpecContext) {
		code, _ := w.active(ctx)
		before := w.read(ctx, code)
		mine, err := w.store.Grant(ctx, code.Digest())
		Expect(err).NotTo(HaveOccurred())
		mine.End(oauth.EndedByHost, w.now)
		Expect(w.read(ctx, code)).To(Equal(before))
	})
}

func adding(w *world) {
	It("says ErrDuplicate for a new grant whose secret is taken, and keeps none of it", func(ctx SpecContext) {
		code := w.pending(ctx)
		before := w.read(ctx, code)
		other := secret(oauth.CodeSecret)
		Expect(w.store.AddGrant(ctx, bare("another", other, code), never)).To(MatchError(oauth.ErrDuplicate))
		w.expectUnknown(ctx, other)
		Expect(w.read(ctx, code)).To(Equal(before))
		Expect(w.store.AddGrant(ctx, bare("another", other), never)).To(Succeed())
	})

	Context("when a grant with the same id stands already", func() {
		var first, second *oauth.AccessGrant
		var firstCode, secondCode oauth.Secret
		var ticket *oauth.Ticket
		BeforeEach(func(ctx SpecContext) {
			ticket = w.ticket()
			first, firstCode = w.approve(ticket, "host token")
			second, secondCode = w.approve(ticket, "host token")
			Expect(w.store.AddGrant(ctx, first, never)).To(Succeed())
		})

		It("replaces it and its secrets if it may be superseded", Label("B13", "I5"), func(ctx SpecContext) {
			var asked oauth.GrantSnapshot
			agree := func(earlier *oauth.AccessGrant) error { asked = kept(earlier); return nil }
			Expect(w.store.AddGrant(ctx, second, agree)).To(Succeed())
			Expect(asked).To(Equal(kept(first)))
			w.expectUnknown(ctx, firstCode)
			Expect(w.read(ctx, secondCode)).To(Equal(kept(second)))
		})

		It("replaces it by one with the same code", Label("B13"), func(ctx SpecContext) {
			third := w.approveAs(ticket, "another host token", firstCode)
			Expect(w.store.AddGrant(ctx, third, func(*oauth.AccessGrant) error { return nil })).To(Succeed())
			Expect(w.read(ctx, firstCode)).To(Equal(kept(third)))
			_, err := w.redeem(ctx, firstCode, func() {})
			Expect(err).NotTo(HaveOccurred())
		})

		It("leaves everything as it was if it may not", func(ctx SpecContext) {
			refuse := func(*oauth.AccessGrant) error { return errRefused }
			Expect(w.store.AddGrant(ctx, second, refuse)).To(MatchError(errRefused))
			w.expectUnknown(ctx, secondCode)
			Expect(w.read(ctx, firstCode)).To(Equal(kept(first)))
		})

		It("leaves everything as it was if a secret of the new one is taken", func(ctx SpecContext) {
			taken := w.pending(ctx)
			agree := func(*oauth.AccessGrant) error { return nil }
			Expect(w.store.AddGrant(ctx, bare(first.ID(), secondCode, taken), agree)).To(MatchError(oauth.ErrDuplicate))
			w.expectUnknown(ctx, secondCode)
			Expect(w.read(ctx, firstCode)).To(Equal(kept(first)))
		})
	})
}

func updating(w *world) {
	It("saves nothing when the change is refused", func(ctx SpecContext) {
		code := w.pending(ctx)
		before := w.read(ctx, code)
		by := redemption(code)
		Expect(w.store.UpdateGrant(ctx, code.Digest(), func(g *oauth.AccessGrant) error {
			_, err := g.Redeem(by, w.settings, w.now)
			return errors.Join(err, errRefused)
		})).To(MatchError(errRefused))
		w.expectUnknown(ctx, by.Access, by.Refresh)
		Expect(w.read(ctx, code)).To(Equal(before))
	})

	It("says ErrDuplicate when a change adds a secret that is taken, and saves nothing", func(ctx SpecContext) {
		code, taken := w.pending(ctx), w.pending(ctx)
		mine := w.read(ctx, code)
		theirs := w.read(ctx, taken)
		by := redemption(code)
		by.Refresh = taken
		Expect(w.store.UpdateGrant(ctx, code.Digest(), func(g *oauth.AccessGrant) error {
			_, err := g.Redeem(by, w.settings, w.now)
			return err
		})).To(MatchError(oauth.ErrDuplicate))
		w.expectUnknown(ctx, by.Access)
		Expect(w.read(ctx, code)).To(Equal(mine))
		Expect(w.read(ctx, taken)).To(Equal(theirs))
	})

	It("shows a revocation to the next read", Label("E6", "E7"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		Expect(w.admits(ctx, tokens.Access)).To(Succeed())
		w.revoke(ctx, tokens.Access)
		Expect(w.admits(ctx, tokens.Access)).NotTo(Succeed())
		again, err := w.refresh(ctx, tokens.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.admits(ctx, again.Access)).To(Succeed())
		w.revoke(ctx, tokens.Refresh)
		Expect(w.admits(ctx, again.Access)).NotTo(Succeed())
	})
}

func (w *world) admits(ctx context.Context, token oauth.Secret) error {
	grant, err := w.store.Grant(ctx, token.Digest())
	if err != nil {
		return err
	}
	_, err = grant.Admits(token.Digest(), w.settings.Resource(), w.now)
	return err
}

func (w *world) revoke(ctx context.Context, token oauth.Secret) {
	Expect(w.store.UpdateGrant(ctx, token.Digest(), func(g *oauth.AccessGrant) error {
		g.Revoke(token.Digest(), clientID, w.now)
		return nil
	})).To(Succeed())
}
