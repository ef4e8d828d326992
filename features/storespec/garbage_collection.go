package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func forgetting(w *world) {
	It("forgets a secret at the very instant that it may be forgotten, and only that one", Label("H6", "I20"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		before, end := w.read(ctx, tokens.Refresh), w.held(ctx, tokens.Access).ForgetAfter
		Expect(w.forget(ctx, end.Add(-time.Millisecond))).To(BeZero())
		w.read(ctx, tokens.Access)
		Expect(w.forget(ctx, end)).To(Equal(1))
		w.expectUnknown(ctx, tokens.Access)
		Expect(w.read(ctx, tokens.Refresh)).To(Equal(before))
		Expect(w.forget(ctx, end)).To(BeZero())
	})

	It("empties a successor's box at the very instant that nobody may open it any more, and does not count that", Label("J9", "D27"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		next, err := w.refresh(ctx, tokens.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		before := w.read(ctx, next.Refresh)
		Expect(before.SuccessorBox).NotTo(BeNil())
		Expect(w.forget(ctx, before.GraceEnd.Add(-time.Millisecond))).To(BeZero())
		Expect(w.read(ctx, next.Refresh)).To(Equal(before))
		Expect(w.forget(ctx, before.GraceEnd)).To(BeZero())
		before.SuccessorBox = nil
		Expect(w.read(ctx, next.Refresh)).To(Equal(before))
	})

	It("keeps the box that a refresh makes while the box before it is forgotten", Label("J9", "D27", "I15"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		second, err := w.refresh(ctx, tokens.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		w.now = w.read(ctx, second.Refresh).GraceEnd
		var third *oauth.Tokens
		refresh := func(inside func()) (err error) { third, err = w.refresh(ctx, second.Refresh, inside); return err }
		forget := func(func()) error { _, err := w.store.DeleteExpired(ctx, w.now); return err }
		Expect(overtaken(refresh, forget)).To(HaveEach(Succeed()))
		again, err := w.refresh(ctx, second.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Refresh.Digest()).To(Equal(third.Refresh.Digest()))
	})

	DescribeTable("empties the wraps of all secrets of a grant when it ends, and no others", Label("H6", "I12", "J8"),
		func(ctx SpecContext, end func(context.Context, oauth.Secret) error) {
			_, others := w.activeWith(ctx, "another token")
			_, tokens := w.active(ctx)
			next, err := w.refresh(ctx, tokens.Refresh, func() {})
			Expect(err).NotTo(HaveOccurred())
			for _, access := range []oauth.Secret{tokens.Access, next.Access, others.Access} {
				Expect(w.held(ctx, access).HostWrap).NotTo(BeNil())
			}
			Expect(end(ctx, next.Refresh)).To(Succeed())
			Expect(w.held(ctx, tokens.Access).HostWrap).To(BeNil())
			Expect(w.held(ctx, next.Access).HostWrap).To(BeNil())
			Expect(w.held(ctx, others.Access).HostWrap).NotTo(BeNil())
		},
		Entry("by one of its secrets", func(ctx context.Context, refresh oauth.Secret) error {
			return w.store.UpdateGrant(ctx, refresh.Digest(), w.end)
		}),
		Entry("by its host token", func(ctx context.Context, _ oauth.Secret) error {
			return w.endAll(ctx, "host token", func() {})
		}),
	)

	It("forgets a code at the very instant that it may be forgotten, and leaves its grant", Label("H6", "D19", "I20"), func(ctx SpecContext) {
		waiting := w.issued(ctx)
		spent, tokens := w.active(ctx)
		Expect(w.forget(ctx, w.code(ctx, waiting).ForgetAfter.Add(-time.Millisecond))).To(BeZero())
		Expect(w.forget(ctx, w.code(ctx, waiting).ForgetAfter)).To(Equal(1))
		w.expectUnknown(ctx, waiting)
		end := w.code(ctx, spent).ForgetAfter
		w.forget(ctx, end.Add(-time.Millisecond))
		w.code(ctx, spent)
		Expect(w.forget(ctx, end)).To(Equal(1))
		w.expectUnknown(ctx, spent)
		w.read(ctx, tokens.Refresh)
		Expect(w.store.AddCode(ctx, bareCode("another", spent), never)).To(Succeed())
	})

	It("forgets a grant with all its secrets at the very instant that it may be forgotten", Label("H6", "I20"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		Expect(w.store.UpdateGrant(ctx, tokens.Refresh.Digest(), w.end)).To(Succeed())
		grant := w.read(ctx, tokens.Refresh)
		w.forget(ctx, grant.ForgetAfter.Add(-time.Millisecond))
		w.read(ctx, tokens.Refresh)
		Expect(w.forget(ctx, grant.ForgetAfter)).To(BeNumerically(">", 0))
		w.expectUnknown(ctx, tokens.Refresh)
		Expect(w.store.AuthorizationsOf(ctx, w.print("host token"))).To(BeZero())
		Expect(w.addGrant(ctx, bare(grant.ID, tokens.Refresh))).To(Succeed())
	})

	It("knows every spent refresh token for as long as its grant, and forgets them all with it", Label("H6", "D27"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		spent := []oauth.Secret{tokens.Refresh}
		for range 12 {
			next, err := w.refresh(ctx, spent[len(spent)-1], func() {})
			Expect(err).NotTo(HaveOccurred())
			spent = append(spent, next.Refresh)
		}
		grant := w.read(ctx, spent[0])
		w.forget(ctx, grant.ForgetAfter.Add(-time.Millisecond))
		for _, token := range spent {
			Expect(w.read(ctx, token).ID).To(Equal(grant.ID))
		}
		Expect(w.forget(ctx, grant.ForgetAfter)).To(Equal(len(spent) + 1))
		for _, token := range spent {
			w.expectUnknown(ctx, token)
		}
	})
}

func (w *world) forget(ctx context.Context, now time.Time) int {
	forgotten, err := w.store.DeleteExpired(ctx, now)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return forgotten
}
