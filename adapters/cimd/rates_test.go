package cimd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// tally counts in memory for several directories, or is down.
type tally struct {
	taken map[oauth.Digest]int
	down  error
}

func (t *tally) Counts(_ context.Context, now time.Time, windows ...oauth.Window) ([]oauth.WindowCount, error) {
	var counts []oauth.WindowCount
	for _, w := range windows {
		counts = append(counts, oauth.WindowCount{Taken: t.taken[w.Name], Ends: now.Add(w.Length)})
	}
	return counts, t.down
}

func (t *tally) Count(_ context.Context, _ time.Time, windows ...oauth.Window) error {
	for _, w := range windows {
		t.taken[w.Name]++
	}
	return t.down
}

func (t *tally) SharedByReplicas() bool { return true }

type oneSecret struct{}

func (oneSecret) Secrets() ([][]byte, error) {
	return [][]byte{make([]byte, oauth.MinSecretLength)}, nil
}

var _ = Describe("Fetching within a budget of several processes", Label("C21", "I22"), func() {
	var client *site
	var clock *handClock
	var shared *tally
	BeforeEach(func() { client, clock, shared = newSite(), newClock(), &tally{taken: map[oauth.Digest]int{}} })
	process := func(shrink ...func(*budgetLimits)) *Directory {
		bounds := patient()
		for _, apply := range shrink {
			apply(&bounds.budget)
		}
		return newDirectory(Options{
			Now: clock.now, RootCAs: client.roots(), AllowLoopback: true, Shared: &Shared{shared, oauth.NewKeys(oneSecret{})},
		}, bounds)
	}
	ask := func(ctx context.Context, at *Directory, address, path string) error {
		_, err := at.Client(oauth.WithRequester(ctx, requesterAt(address)), client.client(path), "")
		return err
	}

	It("counts one requester's fetches together, without harm to another", func(ctx SpecContext) {
		directories := []*Directory{process(), process(), process()}
		for i := range 30 {
			Expect(ask(ctx, directories[i%3], "203.0.113.7", fmt.Sprintf("/%d", i))).To(Succeed())
		}
		for _, directory := range directories {
			Expect(ask(ctx, directory, "203.0.113.7", "/more")).To(MatchError(oauth.ErrMetadataBudget))
		}
		Expect(ask(ctx, directories[0], "203.0.113.7", "/0")).To(Succeed(), "what is remembered costs nothing")
		Expect(ask(ctx, directories[1], "203.0.113.8", "/more")).To(Succeed())
	})

	It("counts the fetches from one host together, whoever asks, and gives their places back", func(ctx SpecContext) {
		few := func(l *budgetLimits) { l.perMinuteAndHost = 2 }
		one, other := process(few), process(few)
		Expect(ask(ctx, one, "203.0.113.7", "/1")).To(Succeed())
		Expect(ask(ctx, other, "203.0.113.8", "/2")).To(Succeed())
		for range defaultBudget.inFlight + 1 {
			Expect(ask(ctx, one, "", "/3")).To(MatchError(ContainSubstring("more than 2 in a minute to one host")))
		}
		Expect(ask(ctx, one, "", "/1")).To(Succeed())
	})

	It("fetches nothing while nobody can count, and goes on with what is remembered", Label("D30", "N14"), func(ctx SpecContext) {
		directory := process()
		Expect(ask(ctx, directory, "203.0.113.7", "/known")).To(Succeed())
		fetches := client.fetches.Load()
		shared.down = errors.New("down")
		for _, address := range []string{"203.0.113.7", ""} {
			Expect(ask(ctx, directory, address, "/unknown")).To(MatchError(oauth.ErrUnavailable))
			Expect(ask(ctx, directory, address, "/known")).To(Succeed())
		}
		Expect(client.fetches.Load()).To(Equal(fetches))
	})
})

// requesterAt is the requester at an address, without limits for "".
func requesterAt(address string) oauth.Requester {
	parsed, _ := netip.ParseAddr(address)
	return oauth.RequesterAt(parsed, oauth.Limits{})
}
