package storespec

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func lookups(w *world) {
	It("finds a grant by each of its tokens", func(ctx SpecContext) {
		_, first := w.active(ctx)
		second, err := w.refresh(ctx, first.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		newest := w.grant(ctx, second.Refresh)
		for _, secret := range []oauth.Secret{first.Access, first.Refresh, second.Access, second.Refresh} {
			digest := secret.Digest()
			Expect(w.grant(ctx, secret)).To(Equal(newest))
			Expect(w.secretSnapshot(ctx, secret).Digest).To(Equal(digest[:]))
		}
	})

	It("returns ErrNotFound for an unknown token", func(ctx SpecContext) {
		w.active(ctx)
		stranger := secret(oauth.AccessTokenSecret)
		w.expectUnknown(ctx, stranger)
		Expect(w.store.UpdateGrant(ctx, stranger.Digest(), w.end)).To(MatchError(oauth.ErrNotFound))
	})

	It("returns copies, so that changing them does not change the store", func(ctx SpecContext) {
		value, tokens := w.active(ctx)
		before, codeBefore := w.grant(ctx, tokens.Refresh), w.code(ctx, value)
		grant, err := w.store.Grant(ctx, tokens.Refresh.Digest())
		Expect(err).NotTo(HaveOccurred())
		grant.End(oauth.EndedByHost, w.now)
		Expect(w.grant(ctx, tokens.Refresh)).To(Equal(before))
		waiting := w.issued(ctx)
		code, err := w.store.Code(ctx, waiting.Digest())
		Expect(err).NotTo(HaveOccurred())
		code.End(oauth.EndedByHost, w.now)
		Expect(w.code(ctx, waiting).State).To(Equal("issued"))
		Expect(w.code(ctx, value)).To(Equal(codeBefore))
	})
}

func updates(w *world) {
	It("stores nothing when the change returns an error", func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		before := w.grant(ctx, tokens.Refresh)
		by := refreshment(tokens.Refresh)
		Expect(w.store.UpdateGrant(ctx, tokens.Refresh.Digest(), func(g *oauth.AccessGrant) error {
			_, err := g.Refresh(by, w.settings, w.now)
			return errors.Join(err, errRefused)
		})).To(MatchError(errRefused))
		w.expectUnknown(ctx, by.Access, by.Successor)
		Expect(w.grant(ctx, tokens.Refresh)).To(Equal(before))
	})

	It("returns ErrDuplicate when a change adds a token that is taken, and stores nothing", func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		_, others := w.active(ctx)
		mine, theirs := w.grant(ctx, tokens.Refresh), w.grant(ctx, others.Refresh)
		by := refreshment(tokens.Refresh)
		by.Successor = others.Refresh
		Expect(w.store.UpdateGrant(ctx, tokens.Refresh.Digest(), func(g *oauth.AccessGrant) error {
			_, err := g.Refresh(by, w.settings, w.now)
			return err
		})).To(MatchError(oauth.ErrDuplicate))
		w.expectUnknown(ctx, by.Access)
		Expect(w.grant(ctx, tokens.Refresh)).To(Equal(mine))
		Expect(w.grant(ctx, others.Refresh)).To(Equal(theirs))
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
