package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/domain/connection"
)

// shelf is a connection.Log that can fail or block.
type shelf struct {
	mu    sync.Mutex
	steps []connection.Step
	kept  []int         // the keep argument of each ForgetSteps
	shut  error         // returned by AddSteps
	fails int           // calls of AddSteps that fail before others succeed
	held  chan struct{} // each batch waits for a value; nil does not block
}

func (s *shelf) AddSteps(_ context.Context, steps []connection.Step) error {
	if s.held != nil {
		<-s.held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return errors.New("invalid connection")
	}
	if s.shut == nil {
		s.steps = append(s.steps, steps...)
	}
	return s.shut
}

func (s *shelf) Steps(context.Context, int64) ([]connection.Step, error) { return nil, nil }

func (s *shelf) ForgetSteps(_ context.Context, before time.Time, keep int) (int, error) {
	Expect(before).To(BeZero())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, keep)
	return 0, nil
}

// Written returns the stored steps.
func (s *shelf) Written() []connection.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.steps)
}

// Forgotten returns the keep argument of each ForgetSteps.
func (s *shelf) Forgotten() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

// Shut makes AddSteps fail, or succeed again with nil.
func (s *shelf) Shut(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = why
}

var then = time.UnixMilli(1_770_091_506_789).UTC()

var _ = Describe("A journal", func() {
	var kept *shelf
	var logged *gbytes.Buffer
	var journal *Journal
	BeforeEach(func() {
		kept = &shelf{}
		logged = gbytes.NewBuffer()
	})
	openWith := func(pause time.Duration) {
		journal = start(kept, slog.New(slog.NewTextHandler(logged, nil)), pause)
		DeferCleanup(journal.Close)
	}
	open := func() { openWith(batchPause) }

	It("writes all steps in order before it closes", func() {
		open()
		for range 500 {
			journal.Note(connection.Step{
				At:      then,
				Kind:    connection.Refresh,
				Outcome: connection.Passed,
				Attempt: "a",
			})
		}
		journal.Close()
		Expect(kept.steps).To(HaveLen(500))
		journal.Close() // a second Close is allowed
	})

	It("drops steps without waiting when its queue is full, and logs their number", func() {
		kept.held = make(chan struct{})
		open()
		for range queueSize + 2*batchSize + 10 {
			journal.Note(connection.Step{At: then, Kind: connection.Refresh, Attempt: "a"})
		}
		close(kept.held)
		journal.Close()
		Expect(len(kept.steps)).To(BeNumerically("<=", queueSize+2*batchSize))
		Expect(logged).To(gbytes.Say("trace incomplete"))
	})

	DescribeTable("drops unauthenticated steps first:", func(stranger connection.Step) {
		kept.held = make(chan struct{})
		open()
		for i := range 2 * queueSize {
			stranger.At, stranger.Agent = then, fmt.Sprint(i)
			journal.Note(stranger)
		}
		for range queueSize/2 - batchSize {
			journal.Note(connection.Step{At: then, Kind: connection.Refresh, Attempt: "a"})
		}
		close(kept.held)
		journal.Close()
		var granted int
		for _, step := range kept.steps {
			if step.Kind == connection.Refresh {
				granted++
			}
		}
		Expect(granted).To(Equal(queueSize/2 - batchSize))
	},
		Entry("pages", connection.Step{Kind: connection.Page, Attempt: "b"}),
		Entry("calls with an unknown token", connection.Step{Kind: connection.Call, Outcome: connection.Refused}),
	)

	It("logs the number of steps that it could not write before it closed", func() {
		kept.shut = errors.New("disk full")
		kept.held = make(chan struct{})
		open()
		for range 2*batchSize + 5 {
			journal.Note(connection.Step{At: then, Kind: connection.Refresh, Attempt: "a"})
		}
		go journal.Close()
		<-journal.open.Done()
		close(kept.held)
		<-journal.closed
		told := 0
		for _, line := range regexp.MustCompile(`steps=(\d+)`).FindAllStringSubmatch(string(logged.Contents()), -1) {
			steps, err := strconv.Atoi(line[1])
			Expect(err).NotTo(HaveOccurred())
			told += steps
		}
		Expect(told).To(Equal(2*batchSize + 5))
	})

	It("tries again when the store fails for a moment, so that no step is lost", func() {
		kept.fails = writeAttempts - 1
		openWith(time.Millisecond)
		for _, kind := range []connection.Kind{connection.Page, connection.Exchange, connection.Refresh} {
			journal.Note(connection.Step{At: then, Kind: kind, Attempt: "a"})
		}
		Eventually(kept.Written).WithTimeout(writeTimeout).Should(HaveExactElements(HaveField("Kind", connection.Page),
			HaveField("Kind", connection.Exchange), HaveField("Kind", connection.Refresh)))
		journal.Close()
		Expect(logged.Contents()).To(BeEmpty())
	})

	It("logs a failure of the store, and writes a later call of the connection", func() {
		call := connection.Step{
			At:      then,
			Kind:    connection.Call,
			Outcome: connection.Passed,
			Attempt: "a",
		}
		kept.shut = errors.New("disk full")
		openWith(time.Millisecond)
		journal.Note(call)
		Eventually(logged).WithTimeout(writeTimeout).Should(gbytes.Say("disk full"))
		kept.Shut(nil)
		Eventually(func() []connection.Step { // forgetSeen runs just after the log line
			journal.Note(call)
			return kept.Written()
		}).WithTimeout(writeTimeout).Should(HaveLen(1))
		journal.Close()
		Expect(kept.steps).To(HaveLen(1))
	})

	It("deletes the oldest steps regularly", func() {
		openWith(0)
		for range trimInterval + batchSize {
			journal.Note(connection.Step{At: then, Kind: connection.Refresh, Attempt: "a"})
			for len(journal.queue) > queueSize/2 {
				runtime.Gosched()
			}
		}
		Eventually(kept.Forgotten).WithTimeout(writeTimeout).Should(Equal([]int{10_000}))
	})

	DescribeTable("leaves out repeated steps:", func(first, second connection.Step, written int) {
		open()
		first.At = then
		if second.At.IsZero() {
			second.At = then
		}
		journal.Note(first)
		journal.Note(second)
		journal.Close()
		Expect(kept.steps).To(HaveLen(written))
	},
		Entry("a step without a connection, within a minute", connection.Step{Kind: connection.Challenge, Request: "1"},
			connection.Step{Kind: connection.Challenge, Request: "2"}, 1),
		Entry("but not a minute later", connection.Step{Kind: connection.Challenge},
			connection.Step{Kind: connection.Challenge, At: then.Add(time.Minute)}, 2),
		Entry("but not of another network", connection.Step{Kind: connection.Challenge, Address: "a"},
			connection.Step{Kind: connection.Challenge, Address: "b"}, 2),
		Entry("a connection's later calls",
			connection.Step{Kind: connection.Call, Outcome: connection.Passed, Attempt: "a"},
			connection.Step{
				Kind:    connection.Call,
				Outcome: connection.Passed,
				Attempt: "a",
				Address: "elsewhere",
				At:      then.Add(24*time.Hour - 1),
			}, 1),
		Entry("but not those of the next day",
			connection.Step{Kind: connection.Call, Outcome: connection.Passed, Attempt: "a"},
			connection.Step{
				Kind:    connection.Call,
				Outcome: connection.Passed,
				Attempt: "a",
				At:      then.Add(24 * time.Hour),
			}, 2),
		Entry("repeated refused calls",
			connection.Step{Kind: connection.Call, Outcome: connection.Refused, Attempt: "a"},
			connection.Step{Kind: connection.Call, Outcome: connection.Refused, Attempt: "a"}, 1),
		Entry("but not pages, because people report their ids",
			connection.Step{Kind: connection.Page, Outcome: connection.Refused},
			connection.Step{Kind: connection.Page, Outcome: connection.Refused}, 2),
		Entry("but not another connection's",
			connection.Step{Kind: connection.Call, Outcome: connection.Passed, Attempt: "a"},
			connection.Step{Kind: connection.Call, Outcome: connection.Passed, Attempt: "b"}, 2),
		Entry("but each wrong token",
			connection.Step{Kind: connection.TokenJudged, Outcome: connection.Refused, Attempt: "a"},
			connection.Step{Kind: connection.TokenJudged, Outcome: connection.Refused, Attempt: "a"}, 2),
	)

	It("writes a repeated step of a client without a connection after a different one, because the client starts again",
		func() {
			open()
			for range 2 {
				journal.Note(connection.Step{At: then, Kind: connection.Challenge})
				journal.Note(connection.Step{At: then, Kind: connection.ResourceMetadata})
			}
			journal.Close()
			Expect(kept.steps).To(HaveLen(4))
		})

	DescribeTable("writes the next call of a connection after a failed step:", func(kind connection.Kind) {
		open()
		call := connection.Step{
			At:      then,
			Kind:    connection.Call,
			Outcome: connection.Passed,
			Attempt: "a",
		}
		for _, step := range []connection.Step{call, {
			At:      then,
			Kind:    kind,
			Outcome: connection.Failed,
			Attempt: "a",
		}, call, call} {
			journal.Note(step)
		}
		journal.Close()
		Expect(kept.steps).To(HaveLen(3))
	},
		Entry("a refresh", connection.Refresh),
		Entry("another call, so that the trace shows the recovery", connection.Call),
	)
})
