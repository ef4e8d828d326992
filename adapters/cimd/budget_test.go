package cimd

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	fetching "github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Fetching within a budget", Label("C21", "C52"), func() {
	var (
		client, other *site
		clock         *handClock
		bounds        limits
		seen          *effects
		directory     *Directory
		budget        *fetching.Fetches
		shares        oauth.Limits
	)

	BeforeEach(func() {
		client, other, clock, bounds, seen, shares = newSite(), newSite(), newClock(), patient(), &effects{},
			oauth.Limits{}
	})
	open := func() {
		budget = fetching.NewFetches(shares)
		directory = openDirectory(Config{
			Now:           clock.now,
			RootCAs:       client.roots(),
			AllowLoopback: true,
			Fetches:       budget,
			Limited:       seen.observe,
		}, bounds)
	}
	ask := func(ctx context.Context, address string, id oauth.ClientID) error {
		_, err := directory.Client(oauth.WithRequester(ctx, requesterAt(address)), id, "")
		return err
	}
	background := func(ctx context.Context, address string, id oauth.ClientID) <-chan error {
		outcome := make(chan error, 1)
		go func() { outcome <- ask(ctx, address, id) }()
		return outcome
	}
	// hold makes fetches wait until release is called.
	hold := func() (release func()) {
		gate := make(chan struct{})
		client.answer = func(w http.ResponseWriter, r *http.Request) { <-gate; client.publish(w, r) }
		release = sync.OnceFunc(func() { close(gate) })
		DeferCleanup(release)
		return release
	}
	fetches := func(s *site) func() int { return func() int { return int(s.fetches.Load()) } }
	waiting := func() int { return budget.Waiting() }

	It("makes a request wait for a place, and refuses it when none becomes free", Label("C45"), func(ctx SpecContext) {
		shares.MaxFetches = 1
		open()
		release := hold()
		first := background(ctx, "192.0.2.1", client.client("/slow"))
		Eventually(fetches(client)).Should(Equal(1))
		second := background(ctx, "198.51.100.1", other.client("/next"))
		Eventually(waiting).Should(Equal(1))
		budget.Wait = 20 * time.Millisecond
		Expect(ask(ctx, "203.0.113.1", other.client("/third"))).
			To(MatchError(And(ContainSubstring("no slot"), ContainSubstring("too many"))))
		Expect(seen.count(oauth.LimitRefused)).To(Equal(1))
		release()
		Eventually(first).Should(Receive(BeNil()))
		Eventually(second).Should(Receive(BeNil()))
		Expect(seen.count(oauth.LimitSlowed)).To(Equal(1))
	})

	DescribeTable("limits the share of",
		func(ctx SpecContext, shrink func(*oauth.Limits), blocked, free func(ctx context.Context) error) {
			shrink(&shares)
			open()
			release := hold()
			outcomes := make(chan error, 3)
			let := func(ask func(ctx context.Context) error) { go func() { outcomes <- ask(ctx) }() }
			let(func(ctx context.Context) error { return ask(ctx, "192.0.2.1", client.client("/slow")) })
			Eventually(fetches(client)).Should(Equal(1))
			let(blocked)
			Eventually(waiting).Should(Equal(1))
			let(free)
			Eventually(func() int { return fetches(client)() + fetches(other)() }).Should(Equal(2))
			Expect(waiting()).To(Equal(1))
			release()
			for range 3 {
				Eventually(outcomes).Should(Receive(BeNil()))
			}
		},
		Entry("one domain", func(l *oauth.Limits) { l.MaxFetchesPerDomain = 1 },
			func(ctx context.Context) error { return ask(ctx, "198.51.100.1", client.client("/next")) },
			func(ctx context.Context) error { return ask(ctx, "192.0.2.1", other.client("/next")) }),
		Entry("one address", func(l *oauth.Limits) { l.MaxFetchesPerAddress = 1 },
			func(ctx context.Context) error { return ask(ctx, "192.0.2.1", other.client("/next")) },
			func(ctx context.Context) error { return ask(ctx, "198.51.100.1", client.client("/free")) }),
		Entry("one network in a domain", func(l *oauth.Limits) { l.MaxFetchesPerDomain = 2 },
			func(ctx context.Context) error { return ask(ctx, "192.0.2.9", client.client("/next")) },
			func(ctx context.Context) error { return ask(ctx, "198.51.100.1", client.client("/free")) }),
		Entry("one network", func(l *oauth.Limits) { l.MaxFetches, l.MaxFetchesPerAddress = 4, 1 },
			func(ctx context.Context) error { return ask(ctx, "192.0.2.9", other.client("/next")) },
			func(ctx context.Context) error { return ask(ctx, "198.51.100.1", other.client("/free")) }),
	)

	It("fetches a known document while unknown ones of its host and its requester use all their places",
		Label("C55"), func(ctx SpecContext) {
			shares.MaxFetchesPerDomain, shares.MaxFetchesPerAddress = 1, 1
			open()
			Expect(ask(ctx, "192.0.2.1", client.client("/known"))).To(Succeed())
			clock.advance(time.Minute)
			release := hold()
			first := background(ctx, "192.0.2.1", client.client("/slow"))
			Eventually(fetches(client)).Should(Equal(2))
			known := background(ctx, "192.0.2.1", client.client("/known"))
			Eventually(fetches(client)).Should(Equal(3))
			release()
			Eventually(first).Should(Receive(BeNil()))
			Eventually(known).Should(Receive(BeNil()))
		})

	// spend uses all fetches of an address from the client's domain in a minute.
	spend := func(ctx context.Context) {
		GinkgoHelper()
		for i := range 3 {
			Expect(ask(ctx, "192.0.2.1", client.client(fmt.Sprint("/made-up-", i)))).To(Succeed())
		}
		Expect(ask(ctx, "192.0.2.1", client.client("/another"))).To(MatchError(oauth.ErrMetadataBudget))
	}

	It("does not count fetches of known documents", Label("C55"), func(ctx SpecContext) {
		shares.MaxFetchesPerMinuteAndAddress, shares.MaxFetchesPerMinuteAndDomain = 1, 1
		open()
		Expect(ask(ctx, "192.0.2.1", client.client("/known"))).To(Succeed())
		clock.advance(time.Minute)
		spend(ctx)
		Expect(ask(ctx, "192.0.2.1", client.client("/known"))).To(Succeed())
		Expect(fetches(client)()).To(Equal(2 + 3))
	})

	It("treats documents of clients in use as known before it has fetched them",
		Label("C54", "C55"), func(ctx SpecContext) {
			shares.MaxFetchesPerMinuteAndAddress = 1
			open()
			directory.Keep(client.client("/used"), oauth.Fingerprint{1})
			spend(ctx)
			Expect(ask(ctx, "192.0.2.1", client.client("/used"))).To(Succeed())
		})

	It("starts a shared fetch as soon as one of its requests gets a place", Label("C39"), func(ctx SpecContext) {
		shares.MaxFetches, shares.MaxFetchesPerAddress = 8, 1
		open()
		release := hold()
		slow := background(ctx, "192.0.2.1", client.client("/slow"))
		Eventually(fetches(client)).Should(Equal(1))
		attacker := background(ctx, "192.0.2.1", other.client("/wanted"))
		Eventually(waiting).Should(Equal(1))
		Expect(ask(ctx, "198.51.100.1", other.client("/wanted"))).To(Succeed())
		// Its own place did not become free in time, but the document is there.
		Eventually(attacker).Should(Receive(BeNil()))
		Expect(fetches(other)()).To(Equal(1))
		release()
		Eventually(slow).Should(Receive(BeNil()))
	})

	It("shortens the time of fetches while all places are taken", func() {
		open()
		Expect(directory.fetchLimit()).To(Equal(time.Minute))
		directory.limits.crowded = time.Second
		fill(context.Background(), directory)
		Expect(directory.fetchLimit()).To(Equal(time.Second))
	})

	It("tries a slow host again after a pause, which is for one network only", Label("C53"), func(ctx SpecContext) {
		const pause = 500 * time.Millisecond
		bounds.fetch, bounds.pause = 50*time.Millisecond, pause
		open()
		release := hold()
		for i := range maxTimeouts {
			Expect(ask(ctx, fmt.Sprintf("192.0.2.%d", i), client.client(fmt.Sprint("/", i)))).
				To(MatchError(oauth.ErrMetadataUnreachable))
			Eventually(func() bool {
				slow, err := directory.breakers.check(
					breakerKey(oauth.Fetch{At: client.client("/"), By: requesterAt("192.0.2.9")}))
				return slow && (i < 2 || err != nil)
			}).Should(BeTrue())
		}
		before := fetches(client)()
		refused := ask(ctx, "192.0.2.9", client.client("/more"))
		Expect(refused).To(MatchError(oauth.ErrMetadataSlow))
		Expect(oauth.WaitOf(refused)).To(Equal(pause))
		Expect(fetches(client)()).To(Equal(before))
		Expect(seen.count(oauth.LimitRefused)).To(Equal(1))
		release()
		directory.limits.fetch = time.Minute
		for i, other := range []string{"198.51.100.1", "2001:db8::1", ""} {
			Expect(ask(ctx, other, client.client(fmt.Sprint("/other-", i)))).To(Succeed())
		}
		Eventually(func() error { return ask(ctx, "192.0.2.1", client.client("/more")) }).Should(Succeed())
	})

	It("has one place for a slow host and one for its known documents", Label("C53", "C55"), func(ctx SpecContext) {
		open()
		Expect(ask(ctx, "203.0.113.1", client.client("/known"))).To(Succeed())
		clock.advance(time.Minute)
		slow := breakerKey(oauth.Fetch{At: client.client("/"), By: requesterAt("192.0.2.1")})
		directory.breakers.record(slow, context.DeadlineExceeded)
		release := hold()
		first := background(ctx, "192.0.2.1", client.client("/1"))
		Eventually(fetches(client)).Should(Equal(2))
		second := background(ctx, "192.0.2.9", client.client("/2"))
		Eventually(waiting).Should(Equal(1))
		known := background(ctx, "192.0.2.1", client.client("/known"))
		Eventually(fetches(client)).Should(Equal(3))
		for range maxTimeouts {
			directory.breakers.record(slow, context.DeadlineExceeded)
		}
		release()
		Eventually(known).Should(Receive(BeNil()))
		Eventually(first).Should(Receive(BeNil()))
		Eventually(second).Should(Receive(Or(BeNil(), MatchError(oauth.ErrMetadataSlow))))
	})
})
