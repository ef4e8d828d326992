package storespec

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

const unknownID = "00000000000000000000000000000000"

func lookups(w *world) {
	It("finds a grant by its id", func(ctx SpecContext) {
		_, first := w.active(ctx)
		_, second := w.active(ctx)
		Expect(w.grant(ctx, first.Access).ID).To(Equal(first.Access.Grant()))
		Expect(w.grant(ctx, second.Access).ID).To(Equal(second.Access.Grant()))
	})

	It("finds nothing for an unknown grant", func(ctx SpecContext) {
		w.active(ctx)
		w.expectUnknown(ctx, unknownID)
		Expect(w.store.UpdateGrant(ctx, unknownID, w.end)).To(MatchError(oauth.ErrNotFound))
	})

	It("returns copies, so that changing them does not change the store", func(ctx SpecContext) {
		value, tokens := w.active(ctx)
		before, codeBefore := w.grant(ctx, tokens.Refresh), w.code(ctx, value)
		grant, err := w.store.Grant(ctx, tokens.Refresh.Grant())
		Expect(err).NotTo(HaveOccurred())
		grant.Revoke(tokens.Access, clientID, w.now)
		grant.End(oauth.EndedByHost, w.now)
		Expect(w.grant(ctx, tokens.Refresh)).To(Equal(before))
		waiting := w.issued(ctx)
		code, err := w.store.Code(ctx, waiting.Grant())
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
		Expect(w.store.UpdateGrant(ctx, tokens.Refresh.Grant(), func(g *oauth.AccessGrant) error {
			_, err := g.Refresh(by, w.settings, w.now)
			return errors.Join(err, errRefused)
		})).To(MatchError(errRefused))
		Expect(w.grant(ctx, tokens.Refresh)).To(Equal(before))
	})

	It("changes the newest state, whatever state the caller knows", Label("I14"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		known, err := w.store.Grant(ctx, tokens.Access.Grant())
		Expect(err).NotTo(HaveOccurred())
		w.revoke(ctx, tokens.Access)
		for _, refused := range []error{nil, errRefused} {
			of := oauth.Selection{Grant: known.ID(), Known: &oauth.Authorizations{Grants: []*oauth.AccessGrant{known}}}
			Expect(w.store.update(ctx, of, func(g *oauth.AccessGrant) error {
				_, err := g.Admits(tokens.Access, w.settings.Resources[0].Resource, w.now)
				if err == nil { // not the newest
					return refused
				}
				return nil
			})).To(Succeed())
			Expect(w.admits(ctx, tokens.Access)).NotTo(Succeed())
		}
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

// RecordingUses adds the specs of oauth.UseRecorder, for a store that implements it.
func RecordingUses(open func() oauth.Store) {
	apart(func() {
		w := &world{}
		BeforeEach(func() { *w = newWorld(open()) })
		lastUses(w)
	})
}

func (w *world) recordUse(ctx context.Context, uses map[string]oauth.Use) error {
	return w.store.Store.(oauth.UseRecorder).RecordUse(ctx, uses)
}

func lastUses(w *world) {
	record := func(ctx context.Context, id string, use oauth.Use) {
		GinkgoHelper()
		Expect(w.recordUse(ctx, map[string]oauth.Use{id: use})).To(Succeed())
	}
	lastUse := func(ctx context.Context, token oauth.Secret) oauth.Use {
		GinkgoHelper()
		found := w.grant(ctx, token)
		return oauth.Use{At: found.LastUsedAt, Access: found.LastUsedToken}
	}

	It("records the last uses of many grants at once, and ignores unknown ones", Label("G15"), func(ctx SpecContext) {
		_, one := w.active(ctx)
		_, other := w.active(ctx)
		_, unused := w.active(ctx)
		first, second := oauth.Use{At: w.now, Access: 1}, oauth.Use{At: w.now.Add(time.Minute), Access: 7}
		Expect(w.recordUse(ctx, map[string]oauth.Use{
			one.Access.Grant():   first,
			other.Access.Grant(): second,
			unknownID:            first,
		})).To(Succeed())
		Expect(lastUse(ctx, one.Access)).To(Equal(first))
		Expect(lastUse(ctx, other.Access)).To(Equal(second))
		Expect(lastUse(ctx, unused.Access)).To(BeZero())
		w.expectUnknown(ctx, unknownID)
	})

	It("keeps the later of two last uses, in any order", Label("G15"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		id := tokens.Access.Grant()
		record(ctx, id, oauth.Use{At: w.now, Access: 3})
		record(ctx, id, oauth.Use{At: w.now.Add(-time.Minute), Access: 5})
		record(ctx, id, oauth.Use{At: w.now.Add(time.Minute), Access: 4})
		Expect(lastUse(ctx, tokens.Access)).To(Equal(oauth.Use{At: w.now.Add(time.Minute), Access: 5}))
	})

	It("undoes no change by recording a use, and no use by a change", Label("G15", "I16"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		id := tokens.Access.Grant()
		use := oauth.Use{At: w.now.Add(time.Minute), Access: 1}
		refresh := func(inside func()) error { _, err := w.refresh(ctx, tokens.Refresh, inside); return err }
		record := func(func()) error { return w.recordUse(ctx, map[string]oauth.Use{id: use}) }
		Expect(interleave(refresh, record)).To(HaveEach(Succeed()))
		Expect(w.grant(ctx, tokens.Access).Generation).To(BeEquivalentTo(2))
		Expect(lastUse(ctx, tokens.Access)).To(Equal(use))
		Expect(w.store.UpdateGrant(ctx, id, w.end)).To(Succeed())
		Expect(record(nil)).To(Succeed())
		Expect(w.grant(ctx, tokens.Access).State).To(Equal("ended"))
	})

	It("undoes no use by a change of all grants of a host token", Label("G15", "I16"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		use := oauth.Use{At: w.now.Add(time.Minute), Access: 1}
		replace := func(inside func()) error { return w.replaceAll(ctx, "host token", "renewed", inside) }
		record := func(func()) error {
			return w.recordUse(ctx, map[string]oauth.Use{tokens.Access.Grant(): use})
		}
		Expect(interleave(replace, record)).To(HaveEach(Succeed()))
		Expect(lastUse(ctx, tokens.Access)).To(Equal(use))
	})

	It("does not keep a last use that only a change knows", Label("G15"), func(ctx SpecContext) {
		_, tokens := w.active(ctx)
		id := tokens.Access.Grant()
		use := oauth.Use{At: w.now, Access: 9}
		record(ctx, id, use)
		Expect(w.store.UpdateGrant(ctx, id, func(g *oauth.AccessGrant) error {
			g.RecordUse(oauth.Use{At: w.now.Add(time.Hour), Access: 10})
			return w.end(g)
		})).To(Succeed())
		Expect(lastUse(ctx, tokens.Access)).To(Equal(use))
	})
}

func (w *world) admits(ctx context.Context, token oauth.Secret) error {
	grant, err := w.store.Grant(ctx, token.Grant())
	if err != nil {
		return err
	}
	_, err = grant.Admits(token, w.settings.Resources[0].Resource, w.now)
	return err
}

func (w *world) revoke(ctx context.Context, token oauth.Secret) {
	Expect(w.store.UpdateGrant(ctx, token.Grant(), func(g *oauth.AccessGrant) error {
		g.Revoke(token, clientID, w.now)
		return nil
	})).To(Succeed())
}
