package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func listing(w *world) {
	It("lists the grants of one host token, oldest first and without secrets", Label("J10"), func(ctx SpecContext) {
		newer := w.grantAt(ctx, w.now.Add(time.Millisecond), "mine")
		w.grantAt(ctx, w.now, "theirs")
		older := w.grantAt(ctx, w.now, "mine")
		grants, err := w.store.GrantsOf(ctx, w.print("mine"))
		Expect(err).NotTo(HaveOccurred())
		Expect(grants).To(HaveLen(2))
		for i, wanted := range []*oauth.AccessGrant{older, newer} {
			grant, secrets := grants[i].Snapshot()
			Expect(grant).To(Equal(kept(wanted)))
			Expect(secrets).To(BeEmpty())
		}
		Expect(w.store.GrantsOf(ctx, w.print("nobody's"))).To(BeEmpty())
	})

	It("changes all grants of one host token and no other", Label("J10"), func(ctx SpecContext) {
		mine, others, theirs := w.grantAt(ctx, w.now, "mine"), w.grantAt(ctx, w.now, "mine"), w.grantAt(ctx, w.now, "theirs")
		Expect(w.store.UpdateGrantsOf(ctx, w.print("mine"), w.end)).To(Succeed())
		Expect(w.reasons(ctx, mine, others, theirs)).To(Equal([]string{"ended_by_host", "ended_by_host", ""}))
		Expect(w.store.UpdateGrantsOf(ctx, w.print("nobody's"), never)).To(Succeed())
	})

	It("neither lists nor changes grants that have ended", Label("J14"), func(ctx SpecContext) {
		ended := w.grantAt(ctx, w.now, "mine")
		Expect(w.store.UpdateGrantsOf(ctx, w.print("mine"), w.end)).To(Succeed())
		w.grantAt(ctx, w.now, "mine")
		grants, err := w.store.GrantsOf(ctx, w.print("mine"))
		Expect(err).NotTo(HaveOccurred())
		Expect(grants).To(HaveLen(1))
		Expect(w.store.UpdateGrantsOf(ctx, w.print("mine"), func(g *oauth.AccessGrant) error {
			Expect(g.ID()).NotTo(Equal(ended.ID()))
			return nil
		})).To(Succeed())
	})

	It("changes none of them when one change is refused", func(ctx SpecContext) {
		other := w.grantAt(ctx, w.now, "mine")
		refused := w.grantAt(ctx, w.now.Add(time.Millisecond), "mine")
		Expect(w.store.UpdateGrantsOf(ctx, w.print("mine"), func(g *oauth.AccessGrant) error {
			if g.ID() == refused.ID() {
				return errRefused
			}
			return w.end(g)
		})).To(MatchError(errRefused))
		Expect(w.reasons(ctx, other, refused)).To(Equal([]string{"", ""}))
	})
}

// grantAt stores a grant that was made at another time and with another host token.
func (w *world) grantAt(ctx context.Context, at time.Time, hostToken string) *oauth.AccessGrant {
	then := *w
	then.now = at
	grant, _ := then.approve(then.ticket(), hostToken)
	Expect(w.store.AddGrant(ctx, grant, never)).To(Succeed())
	return grant
}

func (w *world) end(g *oauth.AccessGrant) error {
	g.End(oauth.EndedByHost, w.now)
	return nil
}

// reasons returns why grants have ended, which it finds by their codes.
func (w *world) reasons(ctx context.Context, grants ...*oauth.AccessGrant) (reasons []string) {
	for _, grant := range grants {
		found, err := w.store.Grant(ctx, oauth.Digest(kept(grant).CodeDigest))
		Expect(err).NotTo(HaveOccurred())
		reasons = append(reasons, kept(found).EndReason)
	}
	return reasons
}
