package cimd

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Fetching within a budget", Label("C21", "C45"), func() {
	var (
		client, other *site
		clock         *handClock
		bounds        limits
	)

	BeforeEach(func() {
		client, other, clock, bounds = newSite(), newSite(), newClock(), patient()
	})

	open := func() *Directory {
		return newDirectory(Options{Now: clock.now, RootCAs: client.roots(), AllowLoopback: true}, bounds)
	}

	// hold starts a fetch that does not end before release is called.
	hold := func(ctx context.Context, directory *Directory, id oauth.ClientID) (release func() error) {
		arrived, gate, outcome := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		client.answer = func(w http.ResponseWriter, r *http.Request) { close(arrived); <-gate; client.publish(w, r) }
		go func() { _, err := directory.Client(ctx, id, ""); outcome <- err }()
		Eventually(ctx, arrived).WithTimeout(10 * time.Second).Should(BeClosed())
		client.answer = client.publish
		return func() error { close(gate); return <-outcome }
	}

	DescribeTable("refuses one more in flight and fetches it later",
		func(ctx SpecContext, shrink func(*budgetLimits), next func() oauth.ClientID) {
			shrink(&bounds.budget)
			directory := open()
			release := hold(ctx, directory, client.client("/slow"))
			_, err := directory.Client(ctx, next(), "")
			Expect(err).To(MatchError(oauth.ErrMetadataBudget))
			Expect(release()).To(Succeed())
			Expect(directory.Client(ctx, next(), "")).NotTo(BeNil())
		},
		Entry("to one host", func(l *budgetLimits) { l.inFlightPerHost = 1 }, func() oauth.ClientID { return client.client("/next") }),
		Entry("to any host", func(l *budgetLimits) { l.inFlight = 1 }, func() oauth.ClientID { return other.client("/next") }),
	)

	It("lets another host be fetched while one is busy", func(ctx SpecContext) {
		bounds.budget.inFlightPerHost = 1
		directory := open()
		release := hold(ctx, directory, client.client("/slow"))
		Expect(directory.Client(ctx, other.client("/next"), "")).NotTo(BeNil())
		Expect(release()).To(Succeed())
	})

	It("refuses more than 30 fetches a minute for one requester, without harm to another", func(ctx SpecContext) {
		bounds.budget.inFlightPerHost = 8
		directory := open()
		ask := func(address, path string) error {
			_, err := directory.Client(oauth.WithRequester(ctx, requesterAt(address)), client.client(path), "")
			return err
		}
		for i := range 30 {
			Expect(ask("203.0.113.7", fmt.Sprintf("/%d", i))).To(Succeed())
		}
		Expect(ask("203.0.113.7", "/more")).To(MatchError(oauth.ErrMetadataBudget))
		Expect(ask("203.0.113.7", "/1")).To(Succeed(), "what is remembered costs nothing")
		Expect(ask("203.0.113.8", "/more")).To(Succeed())
		clock.advance(2 * time.Second)
		Expect(ask("203.0.113.7", "/another")).To(Succeed())
	})

	It("refuses more than 60 fetches a minute to one host, and forgets that with time", func(ctx SpecContext) {
		budget := newBudget(defaultBudget, newOwnRates(defaultBudget))
		enter := func(id string) error {
			leave, err := budget.enter(ctx, oauth.RestoreClientID(id), "", clock.now())
			if err == nil {
				leave()
			}
			return err
		}
		for i := range 60 {
			Expect(enter(fmt.Sprintf("https://client.example/%d", i))).To(Succeed())
		}
		Expect(enter("https://CLIENT.example:443/another")).To(MatchError(oauth.ErrMetadataBudget))
		Expect(enter("https://another.example/client")).To(Succeed())
		clock.advance(time.Second)
		Expect(enter("https://client.example/another")).To(Succeed())
	})

	It("spends nothing on what is remembered", func(ctx SpecContext) {
		bounds.budget.perMinuteAndHost = 1
		directory := open()
		for range 3 {
			Expect(directory.Client(ctx, client.client("/client.json"), "")).NotTo(BeNil())
		}
	})

	It("has the bounds of the catalogue by default", func() {
		Expect(defaultBudget).To(Equal(budgetLimits{inFlight: 8, inFlightPerHost: 2, perMinuteAndHost: 60, perMinuteAndRequester: 30}))
	})
})
