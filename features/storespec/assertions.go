package storespec

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func assertions(w *world) {
	one, other := oauth.Digest{1}, oauth.Digest{2}

	It("accepts an assertion once", Label("D33"), func(ctx SpecContext) {
		Expect(w.store.UseOnce(ctx, one, w.now)).To(Succeed())
		Expect(w.store.UseOnce(ctx, one, w.now)).To(MatchError(oauth.ErrDuplicate))
		Expect(w.store.UseOnce(ctx, one, w.now.Add(time.Hour))).To(MatchError(oauth.ErrDuplicate))
		Expect(w.store.UseOnce(ctx, other, w.now)).To(Succeed())
	})

	It("accepts one of 16 concurrent uses of an assertion", Label("D33"), func(ctx SpecContext) {
		uses := concurrently(16, func(int) error { return w.store.UseOnce(ctx, one, w.now) })
		Expect(uses).To(ContainElement(Succeed()))
		Expect(uses).To(ContainElements(duplicates(15)))
	})

	It("deletes a used assertion exactly at its forgetAfter, and no other",
		Label("D33", "H6", "I20"), func(ctx SpecContext) {
			Expect(w.store.UseOnce(ctx, one, w.now)).To(Succeed())
			Expect(w.store.UseOnce(ctx, other, w.now.Add(time.Millisecond))).To(Succeed())
			Expect(w.deleteExpired(ctx, w.now.Add(-time.Millisecond))).To(BeZero())
			Expect(w.store.UseOnce(ctx, one, w.now)).To(MatchError(oauth.ErrDuplicate))
			Expect(w.deleteExpired(ctx, w.now)).To(Equal(1))
			Expect(w.store.UseOnce(ctx, one, w.now)).To(Succeed())
			Expect(w.store.UseOnce(ctx, other, w.now)).To(MatchError(oauth.ErrDuplicate))
		})
}

func duplicates(n int) []any {
	wanted := make([]any, n)
	for i := range wanted {
		wanted[i] = MatchError(oauth.ErrDuplicate)
	}
	return wanted
}
