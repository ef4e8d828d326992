package cimd

import (
	"context"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Fetching within a budget", Label("C21", "C52"), func() {
	var (
		client, other *site
		clock         *handClock
		bounds        limits
		seen          *effects
		directory     *Directory
	)

	BeforeEach(func() {
		client, other, clock, bounds, seen = newSite(), newSite(), newClock(), patient(), &effects{}
	})
	open := func() {
		directory = openDirectory(Config{
			Now:           clock.now,
			RootCAs:       client.roots(),
			AllowLoopback: true,
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

	It("makes a request wait for a slot", func(ctx SpecContext) {
		bounds.slots, bounds.wait = 1, time.Minute
		open()
		release := hold()
		first := background(ctx, "192.0.2.1", client.client("/slow"))
		Eventually(fetches(client)).Should(Equal(1))
		second := background(ctx, "198.51.100.1", other.client("/next"))
		Eventually(func() int { return seen.count(oauth.LimitSlowed) }).Should(Equal(1))
		Expect(fetches(other)()).To(BeZero())
		release()
		Eventually(first).Should(Receive(BeNil()))
		Eventually(second).Should(Receive(BeNil()))
	})

	It("refuses a request for which no slot becomes free, and counts that", Label("C45"), func(ctx SpecContext) {
		bounds.slots = 1
		open()
		leave := fill(ctx, directory)
		Expect(ask(ctx, "203.0.113.1", other.client("/third"))).
			To(MatchError(And(ContainSubstring("no slot"), ContainSubstring("too many"))))
		Expect(seen.count(oauth.LimitRefused)).To(Equal(1))
		leave()
		Expect(ask(ctx, "203.0.113.1", other.client("/third"))).To(Succeed())
	})
})
