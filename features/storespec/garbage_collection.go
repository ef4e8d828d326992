package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func garbageCollection(w *world) {
	It("deletes a token exactly at its ForgetAfter, and no other", Label("H6", "I20"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		before, end := w.grant(ctx, tokens.Refresh), w.secretSnapshot(ctx, tokens.Access).ForgetAfter
		Expect(w.deleteExpired(ctx, end.Add(-time.Millisecond))).To(BeZero())
		w.grant(ctx, tokens.Access)
		Expect(w.deleteExpired(ctx, end)).To(Equal(1))
		w.expectUnknown(ctx, tokens.Access)
		Expect(w.grant(ctx, tokens.Refresh)).To(Equal(before))
		Expect(w.deleteExpired(ctx, end)).To(BeZero())
	})

	It("empties SuccessorBox exactly at GraceEnd, and does not count it as a deleted row", Label("J9", "D27"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		next, err := w.refresh(ctx, tokens.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		before := w.grant(ctx, next.Refresh)
		Expect(before.SuccessorBox).NotTo(BeNil())
		Expect(w.deleteExpired(ctx, before.GraceEnd.Add(-time.Millisecond))).To(BeZero())
		Expect(w.grant(ctx, next.Refresh)).To(Equal(before))
		Expect(w.deleteExpired(ctx, before.GraceEnd)).To(BeZero())
		before.SuccessorBox = nil
		Expect(w.grant(ctx, next.Refresh)).To(Equal(before))
	})

	It("keeps the SuccessorBox of a refresh that runs while the earlier box is emptied", Label("J9", "D27", "I15"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		second, err := w.refresh(ctx, tokens.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		w.now = w.grant(ctx, second.Refresh).GraceEnd
		var third *oauth.Tokens
		refresh := func(inside func()) (err error) { third, err = w.refresh(ctx, second.Refresh, inside); return err }
		forget := func(func()) error { _, err := w.store.DeleteExpired(ctx, w.now); return err }
		Expect(interleave(refresh, forget)).To(HaveEach(Succeed()))
		again, err := w.refresh(ctx, second.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Refresh.Digest()).To(Equal(third.Refresh.Digest()))
	})

	DescribeTable("empties HostWrap of every token of a grant that ends, and of no other grant,", Label("H6", "I12", "J8"),
		func(ctx SpecContext, end func(context.Context, oauth.Secret) error) {
			_, others := w.activeWith(ctx, "another token")
			_, tokens := w.active(ctx)
			next, err := w.refresh(ctx, tokens.Refresh, func() {})
			Expect(err).NotTo(HaveOccurred())
			for _, access := range []oauth.Secret{tokens.Access, next.Access, others.Access} {
				Expect(w.secretSnapshot(ctx, access).HostWrap).NotTo(BeNil())
			}
			Expect(end(ctx, next.Refresh)).To(Succeed())
			Expect(w.secretSnapshot(ctx, tokens.Access).HostWrap).To(BeNil())
			Expect(w.secretSnapshot(ctx, next.Access).HostWrap).To(BeNil())
			Expect(w.secretSnapshot(ctx, others.Access).HostWrap).NotTo(BeNil())
		},
		Entry("by one of its tokens", func(ctx context.Context, refresh oauth.Secret) error {
			return w.store.UpdateGrant(ctx, refresh.Digest(), w.end)
		}),
		Entry("by its host token", func(ctx context.Context, _ oauth.Secret) error {
			return w.endAll(ctx, "host token", func() {})
		}),
	)

	It("deletes a code exactly at its ForgetAfter, and keeps its grant", Label("H6", "D19", "I20"), func(ctx SpecContext) {
		waiting := w.issued(ctx)
		spent, tokens := w.active(ctx)
		Expect(w.deleteExpired(ctx, w.code(ctx, waiting).ForgetAfter.Add(-time.Millisecond))).To(BeZero())
		Expect(w.deleteExpired(ctx, w.code(ctx, waiting).ForgetAfter)).To(Equal(1))
		w.expectUnknown(ctx, waiting)
		end := w.code(ctx, spent).ForgetAfter
		w.deleteExpired(ctx, end.Add(-time.Millisecond))
		w.code(ctx, spent)
		Expect(w.deleteExpired(ctx, end)).To(Equal(1))
		w.expectUnknown(ctx, spent)
		w.grant(ctx, tokens.Refresh)
		Expect(w.store.AddCode(ctx, minimalCode("another", spent), noEarlierCode)).To(Succeed())
	})

	It("deletes a grant and all its tokens exactly at its ForgetAfter", Label("H6", "I20"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		Expect(w.store.UpdateGrant(ctx, tokens.Refresh.Digest(), w.end)).To(Succeed())
		grant := w.grant(ctx, tokens.Refresh)
		w.deleteExpired(ctx, grant.ForgetAfter.Add(-time.Millisecond))
		w.grant(ctx, tokens.Refresh)
		Expect(w.deleteExpired(ctx, grant.ForgetAfter)).To(BeNumerically(">", 0))
		w.expectUnknown(ctx, tokens.Refresh)
		Expect(w.store.AuthorizationsOf(ctx, w.fingerprint("host token"))).To(BeZero())
		Expect(w.addGrant(ctx, minimalGrant(grant.ID, tokens.Refresh))).To(Succeed())
	})

	It("keeps every used refresh token until it deletes their grant", Label("H6", "D27"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		spent := []oauth.Secret{tokens.Refresh}
		for range 12 {
			next, err := w.refresh(ctx, spent[len(spent)-1], func() {})
			Expect(err).NotTo(HaveOccurred())
			spent = append(spent, next.Refresh)
		}
		grant := w.grant(ctx, spent[0])
		w.deleteExpired(ctx, grant.ForgetAfter.Add(-time.Millisecond))
		for _, token := range spent {
			Expect(w.grant(ctx, token).ID).To(Equal(grant.ID))
		}
		Expect(w.deleteExpired(ctx, grant.ForgetAfter)).To(Equal(len(spent) + 1))
		for _, token := range spent {
			w.expectUnknown(ctx, token)
		}
	})
}

func (w *world) deleteExpired(ctx context.Context, now time.Time) int {
	forgotten, err := w.store.DeleteExpired(ctx, now)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return forgotten
}
