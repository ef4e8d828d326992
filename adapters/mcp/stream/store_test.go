package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	answered   = `{"jsonrpc":"2.0","id":1,"result":{}}`
	progressed = `{"jsonrpc":"2.0","method":"notifications/progress"}`
)

// begin opens streams of a session, as the SDK does: the one that answers nothing comes first.
func (s *Store) begin(ctx context.Context, session string, streams ...string) {
	GinkgoHelper()
	for _, stream := range append([]string{""}, streams...) {
		Expect(s.Open(ctx, session, stream)).To(Succeed())
	}
}

// keepAll opens a stream of session S and appends events to it.
func (s *Store) keepAll(ctx context.Context, stream string, all ...string) {
	GinkgoHelper()
	s.begin(ctx, "S", stream)
	for _, event := range all {
		Expect(s.Append(ctx, "S", stream, []byte(event))).To(Succeed())
	}
}

// read returns what a client gets that has seen the event of that index.
func read(ctx context.Context, store sdk.EventStore, session, stream string, index int) (missed []string, err error) {
	for event, wrong := range store.After(ctx, session, stream, index) {
		if wrong != nil {
			return nil, wrong
		}
		missed = append(missed, string(event))
	}
	return missed, nil
}

// flood displaces all events by calls of another session.
func (s *Store) flood(ctx context.Context) {
	GinkgoHelper()
	event := []byte(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 1000) + `"}`)
	for i := range 2 * s.limit / len(event) {
		stream := fmt.Sprint("flood", i)
		s.begin(ctx, "flood", stream)
		Expect(s.Append(ctx, "flood", stream, nil)).To(Succeed())
		Expect(s.Append(ctx, "flood", stream, event)).To(Succeed())
	}
}

var _ = Describe("Keeping events", func() {
	var (
		e     *Store
		ended []string
	)
	BeforeEach(func() {
		ended = nil
		e = NewStore(128<<10, func(session string) { ended = append(ended, session) })
	})

	It("returns the events of one stream that came after the one the client has seen", func(ctx SpecContext) {
		e.keepAll(ctx, "a", "a0", "a1")
		e.keepAll(ctx, "b", "b0")
		e.keepAll(ctx, "a", "", "a3")
		e.begin(ctx, "T", "a")
		Expect(read(ctx, e, "S", "a", -1)).To(Equal([]string{"a0", "a1", "", "a3"}))
		Expect(read(ctx, e, "S", "a", -7)).To(Equal([]string{"a0", "a1", "", "a3"}))
		Expect(read(ctx, e, "S", "a", 1)).To(Equal([]string{"", "a3"}))
		Expect(read(ctx, e, "S", "a", 3)).To(BeEmpty())
		Expect(read(ctx, e, "S", "b", -1)).To(Equal([]string{"b0"}))
		Expect(read(ctx, e, "T", "a", -1)).To(BeEmpty())
		for _, unknown := range []struct {
			session, stream string
			index           int
		}{{"U", "a", -1}, {"S", "c", -1}, {"Sa", "", -1}, {"S", "a", 4}, {"S", "a", math.MaxInt}} {
			_, err := read(ctx, e, unknown.session, unknown.stream, unknown.index)
			Expect(err).To(MatchError(sdk.ErrEventsPurged))
		}
	})

	It("drops the oldest events, and an answered stream with its last event", func(ctx SpecContext) {
		e.keepAll(ctx, "old", "", answered)
		e.flood(ctx)
		_, err := read(ctx, e, "S", "old", 0)
		Expect(err).To(MatchError(sdk.ErrEventsPurged))
		e.flood(ctx)
		Expect(len(e.streams)).To(BeNumerically("<", e.limit/1000))
		Expect(e.open["flood"]).To(HaveLen(1))
		e.keepAll(ctx, "old", "again")
		Expect(read(ctx, e, "S", "old", -1)).To(Equal([]string{"again"}))
	})

	It("keeps a stream that is still open, even when all its events are dropped", func(ctx SpecContext) {
		e.keepAll(ctx, "slow", "", progressed)
		e.flood(ctx)
		_, err := read(ctx, e, "S", "slow", 0)
		Expect(err).To(MatchError(sdk.ErrEventsPurged), "the notification is dropped")
		e.keepAll(ctx, "slow", answered)
		Expect(read(ctx, e, "S", "slow", 1)).To(Equal([]string{answered}))
	})

	Context("for a client that names no event", func() {
		seen := func(index int) []byte { return fmt.Appendf(nil, "event: message\nid: _%d\ndata: {}\n\n", index) }

		It("continues after the last one that a client has got", func(ctx SpecContext) {
			Expect(e.Seen("S")).To(Equal(-1))
			e.keepAll(ctx, "", "0", "1", "2")
			e.keepAll(ctx, "a", "a0")
			Expect(e.Seen("S")).To(Equal(-1))
			e.Wrote("S", append(seen(0), seen(1)...))
			Expect(e.Seen("S")).To(Equal(1))
			e.Wrote("S", seen(0)) // a client has resumed
			e.Wrote("S", []byte("event: message\nid: a_7\ndata: {}\n\n"))
			e.Wrote("S", []byte(": ok\n\n"))
			e.Wrote("T", seen(7))
			Expect(e.Seen("S")).To(Equal(1))
			e.Wrote("S", seen(2))
			Expect(e.Seen("S")).To(Equal(2))
			Expect(read(ctx, e, "S", "", 2)).To(BeEmpty())
		})

		It("continues with the first one that is left", func(ctx SpecContext) {
			e.keepAll(ctx, "", "lost")
			e.flood(ctx)
			Expect(e.Seen("S")).To(Equal(0))
			e.keepAll(ctx, "", "first", "second")
			Expect(e.Seen("S")).To(Equal(0))
			Expect(read(ctx, e, "S", "", 0)).To(Equal([]string{"first", "second"}))
		})

		It("continues after one that was too long to keep", func(ctx SpecContext) {
			e.keepAll(ctx, "", "before")
			Expect(e.Append(ctx, "S", "", make([]byte, e.limit))).To(MatchError(sdk.ErrEventsPurged))
			e.keepAll(ctx, "", "after")
			Expect(e.Seen("S")).To(Equal(1))
			Expect(read(ctx, e, "S", "", 1)).To(Equal([]string{"after"}))
		})
	})

	It("drops the oldest unanswered streams of a session", func(ctx SpecContext) {
		e.keepAll(ctx, "", progressed)
		for i := range 3 * maxOpenStreams {
			e.begin(ctx, "S", fmt.Sprint(i))
		}
		Expect(e.open["S"]).To(HaveLen(maxOpenStreams))
		Expect(e.streams).To(HaveLen(maxOpenStreams))
		Expect(e.Append(ctx, "S", "0", []byte(answered))).To(MatchError(sdk.ErrEventsPurged))
		Expect(e.Append(ctx, "S", fmt.Sprint(3*maxOpenStreams-1), []byte(answered))).To(Succeed())
		Expect(e.open["S"]).To(HaveLen(maxOpenStreams - 1))
		Expect(read(ctx, e, "S", "", -1)).To(Equal([]string{progressed}))
	})

	It("reports an event that is longer than the store", func(ctx SpecContext) {
		huge := strings.Repeat("x", e.limit)
		e.keepAll(ctx, "a", "before")
		Expect(e.Append(ctx, "S", "a", []byte(huge))).To(MatchError(sdk.ErrEventsPurged))
		e.keepAll(ctx, "a", "after")
		_, err := read(ctx, e, "S", "a", 0)
		Expect(err).To(MatchError(sdk.ErrEventsPurged))
		_, err = read(ctx, e, "S", "a", -1)
		Expect(err).To(MatchError(sdk.ErrEventsPurged))
		Expect(read(ctx, e, "S", "a", 1)).To(Equal([]string{"after"}))
		fits := huge[:len(huge)-eventCost]
		e.keepAll(ctx, "b", fits)
		Expect(read(ctx, e, "S", "b", -1)).To(Equal([]string{fits}))
	})

	It("forgets the open streams of a session that has ended, and reports the end", func(ctx SpecContext) {
		e.begin(ctx, "T")
		e.keepAll(ctx, "", progressed)
		e.keepAll(ctx, "a")
		Expect(e.SessionClosed(ctx, "S")).To(Succeed())
		Expect(ended).To(Equal([]string{"S"}))
		Expect(e.Append(ctx, "S", "a", []byte("late"))).To(MatchError(sdk.ErrEventsPurged))
		Expect(e.Open(ctx, "S", "late")).To(Succeed())
		e.flood(ctx)
		Expect(e.SessionClosed(ctx, "flood")).To(Succeed())
		Expect(e.open).To(HaveLen(1))
		for _, stream := range []string{"", "a", "late"} {
			Expect(e.streams).NotTo(HaveKey(streamKey{"S", stream}))
		}
	})

	It("frees all memory when no session is left", func(ctx SpecContext) {
		e.keepAll(ctx, "a", "secret")
		Expect(e.SessionClosed(ctx, "S")).To(Succeed())
		Expect(e.streams).To(BeEmpty())
		Expect(e.order).To(BeEmpty())
		e.keepAll(ctx, "a", "again")
		Expect(read(ctx, e, "S", "a", -1)).To(Equal([]string{"again"}))
	})

	It("agrees with the SDK's own store about the events that both still have", func(ctx SpecContext) {
		theirs := sdk.NewMemoryEventStore(nil)
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		stream := func() string { return fmt.Sprint("stream", random.IntN(5)) }
		e.begin(ctx, "S")
		for i := range 5 {
			Expect(errors.Join(theirs.Open(ctx, "S", fmt.Sprint("stream", i)),
				e.Open(ctx, "S", fmt.Sprint("stream", i)))).To(Succeed())
		}
		compared, told := 0, map[string]int{}
		for range 5000 {
			to, event := stream(), []byte(strings.Repeat(fmt.Sprint(random.Int()), random.IntN(300)))
			if random.IntN(4) == 0 {
				event = []byte(answered)
			}
			if errors.Is(e.Append(ctx, "S", to, event), sdk.ErrEventsPurged) { // it was answered and forgotten
				Expect(e.streams).NotTo(HaveKey(streamKey{"S", to}))
				continue
			}
			Expect(theirs.Append(ctx, "S", to, event)).To(Succeed())
			told[to]++
			of := stream()
			index := max(0, told[of]-1-random.IntN(60))
			ours, err := read(ctx, e, "S", of, index)
			if errors.Is(err, sdk.ErrEventsPurged) {
				continue
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(read(ctx, theirs, "S", of, index)).To(HaveExactElements(ours))
			compared++
		}
		Expect(compared).To(BeNumerically(">", 500))
	})

	It("is safe for concurrent use", func(ctx SpecContext) {
		e := NewStore(128<<10, func(string) {})
		var (
			all     sync.WaitGroup
			brought atomic.Int32
		)
		for i := range 8 {
			all.Go(func() {
				defer GinkgoRecover()
				for n := range 300 {
					session, who := fmt.Sprint(i, "/", n), fmt.Sprint(i)
					e.begin(ctx, session, "a")
					Expect(e.Append(ctx, session, "a", []byte(strings.Repeat(who, 1000)))).To(Succeed())
					missed, err := read(ctx, e, session, "a", -1)
					if !errors.Is(err, sdk.ErrEventsPurged) { // others may have displaced the event
						Expect(err).NotTo(HaveOccurred())
					}
					Expect(strings.Trim(strings.Join(missed, ""), who)).To(BeEmpty(), "no event of another session")
					brought.Add(int32(len(missed)))
					Expect(e.SessionClosed(ctx, session)).To(Succeed())
				}
			})
		}
		all.Wait()
		Expect(brought.Load()).To(BeNumerically(">", 1000), "events that others have not displaced")
		Expect(e.streams).To(BeEmpty())
	})
})
