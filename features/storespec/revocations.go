package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// WatchingEnds adds the specs of oauth.EndWatcher, for a store that implements it.
func WatchingEnds(open func() oauth.Store) {
	apart(func() { watchingEnds(open) })
}

func watchingEnds(open func() oauth.Store) {
	w := &world{}
	var watcher oauth.EndWatcher
	BeforeEach(func() {
		*w = newWorld(open())
		watcher = w.store.Store.(oauth.EndWatcher)
	})

	It("returns the grants that ended at or after a time, and no others", Label("G16", "I22"), func(ctx SpecContext) {
		w.active(ctx)
		w.endedAt(ctx, w.now.Add(-time.Millisecond))
		first, second := w.endedAt(ctx, w.now), w.endedAt(ctx, w.now.Add(time.Millisecond))
		Expect(watcher.EndedSince(ctx, w.now)).
			To(And(HaveField("Tokens", BeEmpty()), HaveField("Grants", And(HaveLen(2), HaveKey(second),
				HaveKeyWithValue(first, oauth.EndedGrant{Reason: oauth.EndedByHost,
					HostPrint: w.fingerprint("host token")})))))
	})

	It("returns the tokens that were revoked at or after a time, and no others",
		Label("G16", "E7", "I22"), func(ctx SpecContext) {
			w.active(ctx)
			w.revokedAt(ctx, w.now.Add(-time.Millisecond))
			first, second := w.revokedAt(ctx, w.now), w.revokedAt(ctx, w.now.Add(time.Millisecond))
			Expect(watcher.EndedSince(ctx, w.now)).
				To(And(HaveField("Tokens", ConsistOf(first, second)), HaveField("Grants", BeEmpty())))
		})

	It("returns nothing when nothing has ended", Label("G16"), func(ctx SpecContext) {
		w.active(ctx)
		Expect(watcher.EndedSince(ctx, time.Time{})).
			To(And(HaveField("Grants", BeEmpty()), HaveField("Tokens", BeEmpty())))
	})
}

// endedAt stores a grant that ended at this time.
func (w *world) endedAt(ctx context.Context, at time.Time) (grant string) {
	_, tokens := w.active(ctx)
	Expect(w.store.UpdateGrant(ctx, tokens.Refresh.Grant(), func(g *oauth.AccessGrant) error {
		grant = g.ID()
		g.End(oauth.EndedByHost, at)
		return nil
	})).To(Succeed())
	return grant
}

// revokedAt stores an access token that its client revoked at this time.
func (w *world) revokedAt(ctx context.Context, at time.Time) oauth.Digest {
	_, tokens := w.active(ctx)
	Expect(w.store.UpdateGrant(ctx, tokens.Access.Grant(), func(g *oauth.AccessGrant) error {
		Expect(g.Revoke(tokens.Access, clientID, at)).To(BeFalse(), "only the token ends")
		return nil
	})).To(Succeed())
	return tokens.Access.Digest()
}
