package application

import (
	"context"
	"errors"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// usesStore answers a write of last uses as the spec decides.
type usesStore struct {
	oauth.Store
	writing chan map[string]oauth.Use
	answers chan error
}

func (s usesStore) RecordUse(_ context.Context, uses map[string]oauth.Use) error {
	s.writing <- uses
	return <-s.answers
}

var _ = Describe("Flushing the last uses of grants", Label("G15"), func() {
	const patience = time.Minute
	It("waits for a running flush, and keeps its uses if it fails", SpecTimeout(patience), func(ctx SpecContext) {
		store := usesStore{openStore(), make(chan map[string]oauth.Use, 1), make(chan error)}
		server := serverOver(store, func(*oauth.Config) {})
		use := oauth.Use{At: server.now(), Access: 3}
		server.uses.pending = map[string]oauth.Use{"g": use}
		first := make(chan error)
		go func() { first <- server.Operator.FlushUses(ctx) }()
		Eventually(ctx, store.writing).Should(Receive(HaveKeyWithValue("g", use)))

		over, cancel := context.WithCancel(ctx)
		cancel()
		Expect(server.Operator.FlushUses(over)).To(MatchError(context.Canceled), "it waits")
		Expect(server.uses.of("g")).To(Equal(use))

		store.answers <- errors.New("the database has gone")
		Eventually(ctx, first).Should(Receive(HaveOccurred()))
		go func() { first <- server.Operator.FlushUses(ctx) }()
		Eventually(ctx, store.writing).Should(Receive(HaveKeyWithValue("g", use)))
		store.answers <- nil
		Eventually(ctx, first).Should(Receive(BeNil()))
		Expect(server.uses.of("g")).To(Equal(oauth.Use{}))
	})

	It("keeps no uses of further grants while it has those of 100,000", func(ctx SpecContext) {
		store := usesStore{openStore(), make(chan map[string]oauth.Use, 1), make(chan error)}
		server := serverOver(store, func(*oauth.Config) {})
		server.uses.pending = map[string]oauth.Use{}
		for i := range maxPendingUses {
			server.uses.pending[strconv.Itoa(i)] = oauth.Use{At: server.now(), Access: 1}
		}
		flushed := make(chan error)
		go func() { flushed <- server.Operator.FlushUses(ctx) }()
		Eventually(ctx, store.writing).Should(Receive())
		later := server.now().Add(time.Hour)
		use := func(grant string) oauth.Use {
			snapshot := oauth.GrantSnapshot{ConsentSnapshot: oauth.ConsentSnapshot{ID: grant}}
			server.uses.add(oauth.RestoreGrant(snapshot), oauth.Secret{}, later)
			return server.uses.of(grant)
		}
		Expect(use("7").At).To(Equal(later), "a grant that it has")
		Expect(use("another")).To(BeZero())
		store.answers <- errors.New("the disk is full")
		Eventually(ctx, flushed).Should(Receive(HaveOccurred()))
		Expect(use("another")).To(BeZero())
		Expect(server.uses.pending).To(HaveLen(maxPendingUses))
	})

	It("writes a use once, also when a later one fails", func(ctx SpecContext) {
		store := usesStore{openStore(), make(chan map[string]oauth.Use, 1), make(chan error)}
		server := serverOver(store, func(*oauth.Config) {})
		server.uses.pending = map[string]oauth.Use{}
		for i := range usesAtOnce + 1 {
			server.uses.pending[strconv.Itoa(i)] = oauth.Use{At: server.now(), Access: 1}
		}
		flushed := make(chan error)
		flush := func() { go func() { flushed <- server.Operator.FlushUses(ctx) }() }
		flush()
		Eventually(ctx, store.writing).Should(Receive(HaveLen(usesAtOnce)))
		store.answers <- nil
		Eventually(ctx, store.writing).Should(Receive(HaveLen(1)))
		store.answers <- context.DeadlineExceeded
		Eventually(ctx, flushed).Should(Receive(HaveOccurred()))
		flush()
		Eventually(ctx, store.writing).Should(Receive(HaveLen(1)))
		store.answers <- nil
		Eventually(ctx, flushed).Should(Receive(BeNil()))
	}, SpecTimeout(10*time.Second))
})
