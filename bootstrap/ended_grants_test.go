package bootstrap

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

// ending is an oauth.EndWatcher that returns fixed results and records the times of its queries.
type ending struct {
	ended oauth.Ended
	down  error
	since []time.Time
}

func (e *ending) EndedSince(_ context.Context, since time.Time) (oauth.Ended, error) {
	e.since = append(e.since, since)
	return e.ended, e.down
}

// holding is a guarded that records calls of CloseEnded.
type holding struct {
	guarded
	idle   bool
	closed []oauth.Ended
}

func (h *holding) Idle() bool                   { return h.idle }
func (h *holding) CloseEnded(ended oauth.Ended) { h.closed = append(h.closed, ended) }

var _ = Describe("Grants that other processes end", Label("G16", "E9"), func() {
	var store *ending
	var log *strings.Builder
	var now, start time.Time
	var watch *endedGrants
	BeforeEach(func() {
		store, log = &ending{ended: oauth.Ended{Grants: map[string]oauth.EndedGrant{"g": {}}}}, &strings.Builder{}
		start = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
		now = start
		watch = &endedGrants{
			watcher: store,
			now:     func() time.Time { return now },
			logger:  slog.New(slog.NewTextHandler(log, nil)),
			since:   start,
			known:   map[string]time.Time{},
			forget:  func([]string) {},
			recheck: func([]oauth.Fingerprint) {},
		}
	})

	It("are closed in every server with open streams, and in no other", func(ctx SpecContext) {
		one, other, idle := &holding{}, &holding{}, &holding{idle: true}
		for _, h := range []*holding{one, other, idle} {
			watch.add(h)
		}
		watch.poll(ctx)
		Expect(one.closed).To(ConsistOf(store.ended))
		Expect(other.closed).To(ConsistOf(store.ended))
		Expect(idle.closed).To(BeEmpty())
	})

	It("are queried with an overlap, for grants whose end commits late", func(ctx SpecContext) {
		watch.add(&holding{})
		for range 2 {
			now = now.Add(time.Hour)
			watch.poll(ctx)
		}
		Expect(store.since).To(Equal([]time.Time{start.Add(-endedOverlap), start.Add(time.Hour - endedOverlap)}))
	})

	It("are told once, except those that this process has ended, and not logged unless an operator ended them",
		func(ctx SpecContext) {
			told := map[oauth.Fingerprint]int{}
			watch.recheck = func(tokens []oauth.Fingerprint) {
				for _, print := range tokens {
					told[print]++
				}
			}
			store.ended = oauth.Ended{Grants: map[string]oauth.EndedGrant{
				"own":      {Reason: oauth.EndedByHost, HostPrint: oauth.Fingerprint{1}},
				"site's":   {Reason: oauth.EndedByHost, HostPrint: oauth.Fingerprint{2}},
				"person's": {Reason: oauth.EndedByPerson, HostPrint: oauth.Fingerprint{3}},
			}}
			watch.learn("own")
			for range 3 {
				now = now.Add(endedOverlap / 2)
				watch.poll(ctx)
			}
			Expect(told).To(Equal(map[oauth.Fingerprint]int{{2}: 1}))
			Expect(log.String()).To(BeEmpty())
		})

	It("are closed after an outage, which is logged once", func(ctx SpecContext) {
		h := &holding{}
		watch.add(h)
		store.down = errors.New("the disk is on fire")
		for range 3 {
			now = now.Add(time.Minute)
			watch.poll(ctx)
		}
		Expect(h.closed).To(BeEmpty())
		Expect(strings.Count(log.String(), "the disk is on fire")).To(Equal(1))
		store.down = nil
		watch.poll(ctx)
		Expect(h.closed).To(HaveLen(1))
		Expect(store.since).To(HaveEach(start.Add(-endedOverlap)))
		store.down = errors.New("the disk is on fire")
		watch.poll(ctx)
		Expect(strings.Count(log.String(), "the disk is on fire")).To(Equal(2), "the next outage")
	})

	It("are queried at least twice within the promised second", func() {
		Expect(endedInterval).To(BeNumerically("<=", time.Second/2))
		Expect(endedOverlap).To(BeNumerically(">", 5*time.Second), "the maximum wait of a transaction")
	})
})

var _ = Describe("Starting a program", Label("U25"), func() {
	It("is limited for each person, to thirty in a minute or three for each process of theirs", func() {
		for processes, atOnce := range map[int]int{1: 30, 20: 60} {
			mayStart := newStarts(processes)
			for range atOnce {
				Expect(mayStart("ada")).To(BeTrue())
			}
			Expect(mayStart("ada")).To(BeFalse())
			Expect(mayStart("bob")).To(BeTrue())
		}
	})
})

// WithSweepEvery sets the interval of sweeps.
func WithSweepEvery(every time.Duration) OAuthOption {
	return func(o *oauthOptions) { o.sweepInterval = every }
}
