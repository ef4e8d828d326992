package bootstrap_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/oauth"
)

// swept is a store that counts deletions of expired rows.
type swept struct {
	*persistence.Store
	times atomic.Int32
	until atomic.Pointer[time.Time]

	oldest atomic.Pointer[time.Time] // of the trace that is kept
	most   atomic.Int32
}

func (s *swept) DeleteExpired(ctx context.Context, now time.Time) (int, error) {
	s.times.Add(1)
	s.until.Store(&now)
	return s.Store.DeleteExpired(ctx, now)
}

func (s *swept) ForgetAttempts(ctx context.Context, before time.Time, keep int) (int, error) {
	s.oldest.Store(&before)
	s.most.Store(int32(keep))
	return s.Store.ForgetAttempts(ctx, before, keep)
}

var _ = Describe("Settings of a host", func() {
	const issuer = "https://cms.example"

	DescribeTable("have limits", Label("F9"), func(config oauth.Config, name string) {
		config.Issuer, config.VerifyBearer = issuer, func(string) bool { return true }
		_, err := bootstrap.NewOAuthServer(config, openStore())
		Expect(err).To(MatchError(ContainSubstring(name)))
	},
		Entry(nil, oauth.Config{RefreshGrace: time.Hour + 1}, "RefreshGrace"),
		Entry(nil, oauth.Config{RecheckEvery: time.Minute - 1}, "RecheckEvery"),
		Entry(nil, oauth.Config{Resource: issuer + "/oauth/mcp"}, "Resource"),
		Entry(nil, oauth.Config{Resource: issuer + "/.well-known/x"}, "Resource"),
		Entry(nil, oauth.Config{AuthCodeTTL: 11 * time.Minute}, "AuthCodeTTL"),
		Entry(nil, oauth.Config{AccessTokenTTL: 25 * time.Hour}, "AccessTokenTTL"),
		Entry(nil, oauth.Config{GrantTTL: 366 * 24 * time.Hour}, "GrantTTL"),
		Entry(nil, oauth.Config{AccessTokenTTL: 2 * time.Hour, RefreshIdleTTL: time.Hour}, "RefreshIdleTTL"),
	)

	It("may equal those limits", Label("F9"), func() {
		authz, err := bootstrap.NewOAuthServer(oauth.Config{
			Issuer:         issuer,
			VerifyBearer:   func(string) bool { return true },
			RefreshGrace:   5 * time.Minute,
			RecheckEvery:   time.Minute,
			AuthCodeTTL:    10 * time.Minute,
			AccessTokenTTL: 24 * time.Hour,
			GrantTTL:       365 * 24 * time.Hour,
		}, openStore())
		Expect(err).NotTo(HaveOccurred())
		authz.Close()
	})

	It("delete expired rows at each interval, by the host's clock, until the server is closed", Label("H6"), func() {
		store, hours := &swept{Store: openStore()}, &clock{}
		hours.advance(24 * time.Hour)
		config := oauth.Config{
			Issuer:       issuer,
			VerifyBearer: func(string) bool { return true },
			Now:          hours.now,
			Logger:       slog.New(slog.DiscardHandler),
		}
		authz, err := bootstrap.NewOAuthServer(config, store, bootstrap.WithSweepEvery(time.Millisecond))
		Expect(err).NotTo(HaveOccurred())
		Eventually(store.times.Load).Should(BeNumerically(">", 2))
		Expect(*store.until.Load()).To(BeTemporally("~", hours.now(), time.Minute))
		Eventually(store.most.Load).Should(BeEquivalentTo(5_000))
		Expect(*store.oldest.Load()).To(BeTemporally("~", hours.now().Add(-7*24*time.Hour), time.Minute))
		authz.Close()
		before := store.times.Load()
		Consistently(store.times.Load, "50ms").Should(BeNumerically("<=", before+1), "one may have been running")
	})
})
