package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func garbageCollection(w *world) {
	It("deletes a code exactly at its ForgetAfter, and keeps its grant",
		Label("H6", "D19", "I20"), func(ctx SpecContext) {
			waiting := w.issued(ctx)
			spent, tokens := w.active(ctx)
			Expect(w.deleteExpired(ctx, w.code(ctx, waiting).ForgetAfter.Add(-time.Millisecond))).To(BeZero())
			Expect(w.deleteExpired(ctx, w.code(ctx, waiting).ForgetAfter)).To(Equal(1))
			w.expectUnknown(ctx, waiting.Grant())
			end := w.code(ctx, spent).ForgetAfter
			w.deleteExpired(ctx, end.Add(-time.Millisecond))
			w.code(ctx, spent)
			Expect(w.deleteExpired(ctx, end)).To(Equal(1))
			_, err := w.store.Code(ctx, spent.Grant())
			Expect(err).To(MatchError(oauth.ErrNotFound))
			w.grant(ctx, tokens.Refresh)
		})

	It("deletes a grant exactly at its ForgetAfter, and no other", Label("H6", "I20"), func(ctx SpecContext) {
		_, others := w.activeWith(ctx, "another token")
		_, tokens := w.active(ctx)
		Expect(w.store.UpdateGrant(ctx, tokens.Refresh.Grant(), func(g *oauth.AccessGrant) error {
			g.End(oauth.EndedByHost, w.now.Add(-7*24*time.Hour))
			return nil
		})).To(Succeed())
		grant := w.grant(ctx, tokens.Refresh)
		w.deleteExpired(ctx, grant.ForgetAfter.Add(-time.Millisecond))
		w.grant(ctx, tokens.Refresh)
		Expect(w.deleteExpired(ctx, grant.ForgetAfter)).To(Equal(1))
		w.expectUnknown(ctx, grant.ID)
		Expect(w.store.AuthorizationsOf(ctx, w.fingerprint("host token"))).To(BeZero())
		w.grant(ctx, others.Refresh)
		Expect(w.addGrant(ctx, minimalGrant(grant.ID))).To(Succeed())
	})

	It("keeps a grant whose end a refresh has moved", Label("H6", "I20"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		end := w.grant(ctx, tokens.Refresh).ForgetAfter
		w.now = w.now.Add(24 * time.Hour)
		_, err := w.refresh(ctx, tokens.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		w.deleteExpired(ctx, end)
		w.grant(ctx, tokens.Refresh)
	})
}

func (w *world) deleteExpired(ctx context.Context, now time.Time) int {
	forgotten, err := w.store.DeleteExpired(ctx, now)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return forgotten
}
