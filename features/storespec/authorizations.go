package storespec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func authorizations(w *world) {
	It("lists the codes and grants of one host token", Label("J10"), func(ctx SpecContext) {
		newer, newerCode := w.grantAt(ctx, w.now.Add(time.Millisecond), "mine"),
			w.codeAt(ctx, w.now.Add(time.Millisecond), "mine")
		w.grantAt(ctx, w.now, "theirs")
		w.codeAt(ctx, w.now, "theirs")
		older, olderCode := w.grantAt(ctx, w.now, "mine"), w.codeAt(ctx, w.now, "mine")
		found, err := w.store.AuthorizationsOf(ctx, w.fingerprint("mine"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ids(found)).To(ConsistOf(olderCode, newerCode, older, newer))
		for _, grant := range found.Grants {
			Expect(grant.Snapshot().Subject).To(Equal("ada"))
		}
		Expect(w.store.AuthorizationsOf(ctx, w.fingerprint("another"))).To(BeZero())
	})

	It("changes all codes and grants of one host token, and no others", Label("J10"), func(ctx SpecContext) {
		mine := []string{w.codeAt(ctx, w.now, "mine"), w.codeAt(ctx, w.now, "mine"), w.grantAt(ctx, w.now, "mine"),
			w.grantAt(ctx, w.now, "mine")}
		theirs := []string{w.codeAt(ctx, w.now, "theirs"), w.grantAt(ctx, w.now, "theirs")}
		var changed oauth.Authorizations
		Expect(w.store.UpdateAuthorizationsOf(ctx, w.fingerprint("mine"), func(found oauth.Authorizations) error {
			changed = found
			found.End(func(string) bool { return true }, oauth.EndedByHost, w.now)
			return nil
		})).To(Succeed())
		Expect(ids(changed)).To(ConsistOf(mine))
		Expect(w.store.AuthorizationsOf(ctx, w.fingerprint("mine"))).To(BeZero())
		left, err := w.store.AuthorizationsOf(ctx, w.fingerprint("theirs"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ids(left)).To(Equal(theirs))
	})

	It("neither lists nor changes redeemed or withdrawn codes and ended grants", Label("J14"), func(ctx SpecContext) {
		w.grantAt(ctx, w.now, "mine")
		w.codeAt(ctx, w.now, "mine")
		Expect(w.endAll(ctx, "mine", func() {})).To(Succeed())
		grant, code := w.grantAt(ctx, w.now, "mine"), w.codeAt(ctx, w.now, "mine")
		found, err := w.store.AuthorizationsOf(ctx, w.fingerprint("mine"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ids(found)).To(Equal([]string{code, grant}))
		Expect(w.store.UpdateAuthorizationsOf(ctx, w.fingerprint("mine"), func(found oauth.Authorizations) error {
			Expect(ids(found)).To(Equal([]string{code, grant}))
			return nil
		})).To(Succeed())
	})

	It("finds codes and grants by their newest host token, and by no earlier one", Label("J19"), func(ctx SpecContext) {
		code, grant := w.codeAt(ctx, w.now, "mine"), w.grantAt(ctx, w.now, "mine")
		theirs := w.grantAt(ctx, w.now, "theirs")
		Expect(w.replaceAll(ctx, "mine", "renewed", func() {})).To(Succeed())
		Expect(w.store.AuthorizationsOf(ctx, w.fingerprint("mine"))).To(BeZero())
		renewed, err := w.store.AuthorizationsOf(ctx, w.fingerprint("renewed"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ids(renewed)).To(Equal([]string{code, grant}))
		replaced := renewed.Grants[0].Snapshot()
		Expect(replaced.HostNew).NotTo(BeEmpty())
		Expect(replaced.HostBox).To(BeEmpty())
		left, err := w.store.AuthorizationsOf(ctx, w.fingerprint("theirs"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ids(left)).To(Equal([]string{theirs}))
	})

	It("changes none of them when the change returns an error", func(ctx SpecContext) {
		code, grant := w.codeAt(ctx, w.now, "mine"), w.grantAt(ctx, w.now.Add(time.Millisecond), "mine")
		Expect(w.store.UpdateAuthorizationsOf(ctx, w.fingerprint("mine"), func(found oauth.Authorizations) error {
			found.End(func(string) bool { return true }, oauth.EndedByHost, w.now)
			return errRefused
		})).To(MatchError(errRefused))
		left, err := w.store.AuthorizationsOf(ctx, w.fingerprint("mine"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ids(left)).To(Equal([]string{code, grant}))
	})
}

// replaceAll replaces the host token of all its codes and grants.
func (w *world) replaceAll(ctx context.Context, hostToken, replacement string, inside func()) error {
	return w.store.UpdateAuthorizationsOf(ctx, w.fingerprint(hostToken), func(found oauth.Authorizations) error {
		inside()
		resource := w.settings.Resources[0].Resource
		by := oauth.NewReplacement(host(replacement), w.now)
		by.Verified[resource] = oauth.Principal{Subject: "ada"}
		_, err := found.Replace(by, w.settings, w.now)
		return err
	})
}

func ids(all oauth.Authorizations) (found []string) {
	for _, one := range all.All() {
		found = append(found, one.ID())
	}
	return found
}

// codeAt stores a code that was issued at this time with this host token.
func (w *world) codeAt(ctx context.Context, at time.Time, hostToken string) (id string) {
	then := *w
	then.now = at
	code, _ := then.issue(then.ticket(), hostToken)
	Expect(w.store.AddCode(ctx, code, noEarlierCode)).To(Succeed())
	return code.ID()
}

// grantAt stores a grant that was opened at this time with this host token.
func (w *world) grantAt(ctx context.Context, at time.Time, hostToken string) (id string) {
	then := *w
	then.now = at
	_, tokens := then.activeWith(ctx, hostToken)
	return w.grant(ctx, tokens.Access).ID
}

func (w *world) end(g *oauth.AccessGrant) error {
	g.End(oauth.EndedByHost, w.now)
	return nil
}

// endAll ends the codes and grants of a host token.
func (w *world) endAll(ctx context.Context, hostToken string, inside func()) error {
	return w.store.UpdateAuthorizationsOf(ctx, w.fingerprint(hostToken), func(found oauth.Authorizations) error {
		inside()
		found.End(func(string) bool { return true }, oauth.EndedByHost, w.now)
		return nil
	})
}
