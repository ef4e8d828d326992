package application

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// slowStore lets a spec act between a read and its return.
type slowStore struct {
	oauth.Store
	after func()
}

func (s *slowStore) Find(ctx context.Context, of oauth.Selection) (oauth.Authorizations, error) {
	found, err := s.Store.Find(ctx, of)
	if s.after != nil {
		s.after()
	}
	return found, err
}

// sharedStore is a store that replicas share.
type sharedStore struct{ *countingStore }

func (sharedStore) SharedByReplicas() bool { return true }

var _ = Describe("Grants that a process trusts for a second", Label("E9", "I22", "G7"), func() {
	var shared *countingStore
	var mine, theirs *Server // two processes on one store
	var tokens *oauth.Tokens
	var now time.Time
	BeforeEach(func(ctx SpecContext) {
		now = time.Now()
		shared = openStore()
		mine, theirs = serverOver(shared, func(*oauth.Config) {}), serverOver(shared, func(*oauth.Config) {})
		mine.store.now = func() time.Time { return now }
		tokens = mine.connect(ctx, "mcp offline_access")
	})
	call := func(ctx context.Context) error {
		_, err := mine.Tokens.Authenticate(ctx, tokens.Access.Reveal(), mine.Settings.Resources[0].Resource)
		return err
	}
	revoke := func(ctx context.Context, at *Server) {
		GinkgoHelper()
		Expect(at.Tokens.Revoke(ctx, client.Credentials{Client: clientID}, tokens.Access.Reveal())).To(Succeed())
	}

	It("are refused at once after a change in this process", func(ctx SpecContext) {
		Expect(call(ctx)).To(Succeed())
		revoke(ctx, mine)
		Expect(call(ctx)).NotTo(Succeed())
	})

	It("are refused after a second, or as soon as the end is known, after a change in another process",
		func(ctx SpecContext) {
			Expect(call(ctx)).To(Succeed())
			revoke(ctx, theirs)
			now = now.Add(grantTrusted - time.Millisecond)
			Expect(call(ctx)).To(Succeed())
			now = now.Add(time.Millisecond)
			Expect(call(ctx)).NotTo(Succeed())

			tokens, now = mine.connect(ctx, "mcp offline_access"), time.Now()
			Expect(call(ctx)).To(Succeed())
			revoke(ctx, theirs)
			mine.Operator.ForgetGrants([]string{tokens.Access.Grant()})
			Expect(call(ctx)).NotTo(Succeed())
		})

	It("are refused everywhere when an end is confirmed on a shared database", func(ctx SpecContext) {
		mine.store.now, theirs.store.Store = time.Now, sharedStore{shared}
		Expect(call(ctx)).To(Succeed())
		of := map[string]string{credential.Token: "host-token"}
		Expect(theirs.Operator.EndGrantsOf(ctx, of, oauth.EndedByHost)).To(Equal(1))
		Expect(call(ctx)).NotTo(Succeed())
	})

	It("never refuse: a token that another process has issued meanwhile is good", func(ctx SpecContext) {
		Expect(call(ctx)).To(Succeed())
		refreshed, err := theirs.refresh(ctx, tokens.Refresh)
		Expect(err).NotTo(HaveOccurred())
		tokens.Access = refreshed.Access
		Expect(call(ctx)).To(Succeed())
		_, err = mine.refresh(ctx, refreshed.Refresh)
		Expect(err).NotTo(HaveOccurred())
	})

	It("are not brought back by a read that began before the change", func(ctx SpecContext) {
		slow := &slowStore{Store: shared}
		mine.store.Store = slow
		slow.after = func() {
			slow.after = nil
			revoke(ctx, mine)
		}
		Expect(call(ctx)).To(Succeed(), "it began before")
		Expect(call(ctx)).NotTo(Succeed())
	})

	It("are read once for the calls of a second", func(ctx SpecContext) {
		shared.reads.Store(0)
		for range 10 {
			Expect(call(ctx)).To(Succeed())
		}
		Expect(shared.reads.Load()).To(BeEquivalentTo(1))
		now = now.Add(grantTrusted)
		Expect(call(ctx)).To(Succeed())
		Expect(shared.reads.Load()).To(BeEquivalentTo(2))
	})

	It("are not what a refresh begins with", Label("E9", "D27"), func(ctx SpecContext) {
		ahead := theirs.ports.Now
		theirs.ports.Now = func() time.Time { return ahead().Add(2 * time.Second) }
		tokens := mine.connect(ctx, "mcp offline_access")
		second, err := theirs.refresh(ctx, tokens.Refresh)
		Expect(err).NotTo(HaveOccurred())
		_, err = mine.Tokens.Authenticate(ctx, tokens.Access.Reveal(), mine.Settings.Resources[0].Resource)
		Expect(err).NotTo(HaveOccurred())
		Expect(theirs.Tokens.Revoke(ctx, client.Credentials{Client: clientID}, second.Refresh.Reveal())).To(Succeed())
		_, err = mine.refresh(ctx, tokens.Refresh)
		Expect(err).To(HaveOccurred())
	})

	It("are never alive after their end was answered, even if others read them meanwhile", func(ctx SpecContext) {
		mine.store.Store, mine.store.now = shared.Store, time.Now
		for range 50 {
			tokens := mine.connect(ctx, "mcp offline_access")
			var answered atomic.Bool
			var users sync.WaitGroup
			for range 3 {
				users.Go(func() {
					defer GinkgoRecover()
					for last := false; !last; {
						last = answered.Load()
						_, err := mine.Tokens.Authenticate(ctx, tokens.Access.Reveal(), firstResource)
						Expect(err != nil || !last).To(BeTrue(), "used after its end was answered")
					}
				})
			}
			revoke := mine.Tokens.Revoke(ctx, client.Credentials{Client: clientID}, tokens.Refresh.Reveal())
			answered.Store(true)
			users.Wait()
			Expect(revoke).To(Succeed())
		}
	})
})
