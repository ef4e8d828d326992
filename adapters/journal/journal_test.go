package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/features/suite"
)

func TestJournal(t *testing.T) { suite.Run(t, "Journal") }

// shelf is an attempt.Log that can fail or block.
type shelf struct {
	mu       sync.Mutex
	attempts map[string]attempt.Attempt
	kept     []int         // the keep argument of each ForgetAttempts
	shut     error         // returned by ChangeAttempts
	fails    int           // calls that fail before others succeed
	held     chan struct{} // each batch waits for a value; nil does not block
}

func (s *shelf) ChangeAttempts(_ context.Context, ids []string,
	change func([]attempt.Attempt) []attempt.Attempt) error {
	if s.held != nil {
		<-s.held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return errors.New("invalid connection")
	}
	if s.shut != nil {
		return s.shut
	}
	var found []attempt.Attempt
	for _, id := range ids {
		if a, has := s.attempts[id]; has {
			found = append(found, a)
		}
	}
	if s.attempts == nil {
		s.attempts = map[string]attempt.Attempt{}
	}
	for _, a := range change(found) {
		s.attempts[a.ID] = a
	}
	return nil
}

func (*shelf) Attempts(context.Context, time.Time) ([]attempt.Attempt, error) { return nil, nil }

func (s *shelf) ForgetAttempts(_ context.Context, before time.Time, keep int) (int, error) {
	Expect(before).To(BeZero())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, keep)
	return 0, nil
}

// Path returns the kinds of the stored steps of an attempt.
func (s *shelf) Path(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kinds []string
	for _, step := range s.attempts[id].Steps {
		kinds = append(kinds, string(step.Kind))
	}
	return strings.Join(kinds, " ")
}

// Shut makes ChangeAttempts fail, or succeed again with nil.
func (s *shelf) Shut(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = why
}

var then = time.UnixMilli(1_770_091_500_000).UTC().Truncate(5 * time.Minute)

var _ = Describe("A journal", func() {
	var kept *shelf
	var logged *gbytes.Buffer
	var journal *Journal
	var clock time.Time
	BeforeEach(func() {
		kept, logged, clock = &shelf{}, gbytes.NewBuffer(), then
	})
	open := func() {
		journal = New(kept, slog.New(slog.NewTextHandler(logged, nil)), func() time.Time { return clock })
		DeferCleanup(journal.Close)
	}
	note := func(outcome attempt.Outcome, kind attempt.Kind, id string) {
		step := attempt.Step{Kind: kind, Outcome: outcome}
		journal.Note(attempt.Entry{Step: step, Attempt: id, Agent: "cli"})
	}

	It("drops steps without waiting when its queue is full, and logs their number", func() {
		kept.held = make(chan struct{})
		open()
		for range queueSize + 2*batchSize + 10 {
			note(attempt.Passed, attempt.Refresh, "a")
		}
		close(kept.held)
		journal.Close()
		Expect(logged).To(gbytes.Say("trace incomplete"))
	})

	DescribeTable("drops steps without a secret first:", func(kind attempt.Kind, outcome attempt.Outcome,
		id string) {
		kept.held = make(chan struct{})
		open()
		for range 2 * queueSize {
			note(outcome, kind, id)
		}
		for i := range queueSize/2 - batchSize {
			note(attempt.Passed, attempt.Refresh, fmt.Sprint("granted", i))
		}
		close(kept.held)
		journal.Close()
		granted := 0
		for _, a := range kept.attempts {
			if a.Progress == attempt.Granted {
				granted++
			}
		}
		Expect(granted).To(Equal(queueSize/2 - batchSize))
	},
		Entry("calls with an unknown token", attempt.Call, attempt.Refused, ""),
	)

	It("tries again when the store fails for a moment, so that no step is lost", func() {
		kept.fails = writeAttempts - 1
		open()
		for _, kind := range []attempt.Kind{attempt.Page, attempt.Exchange, attempt.Refresh} {
			note(attempt.Passed, kind, "a")
		}
		Eventually(kept.Path).WithArguments("a").WithTimeout(writeTimeout).Should(Equal("page exchange refresh"))
		journal.Close()
		Expect(logged.Contents()).To(BeEmpty())
	})

	It("logs a failure of the store, and writes a later call of the client", func() {
		kept.shut = errors.New("disk full")
		open()
		note(attempt.Passed, attempt.Call, "a")
		Eventually(logged).WithTimeout(writeTimeout).Should(gbytes.Say("disk full"))
		kept.Shut(nil)
		Eventually(func() string { // the uses are forgotten just after the log line
			note(attempt.Passed, attempt.Call, "a")
			return kept.Path("a")
		}).WithTimeout(writeTimeout).Should(Equal("call"))
	})

	It("deletes the oldest attempts after so many steps", func() {
		kept.held = make(chan struct{})
		open()
		for range trimInterval {
			note(attempt.Passed, attempt.Refresh, "a")
		}
		Expect(kept.kept).To(BeEmpty())
		close(kept.held)
		journal.Close()
		Expect(kept.kept).To(Equal([]int{5_000}))
	})

	DescribeTable("takes a call of a client", func(taken bool, between func()) {
		open()
		note(attempt.Passed, attempt.Call, "a")
		between()
		clock = clock.Add(time.Second)
		at := clock
		note(attempt.Passed, attempt.Call, "a")
		journal.Close()
		Expect(kept.attempts["a"].At.Equal(at)).To(Equal(taken))
	},
		Entry("once", false, func() {}),
		Entry("again the next day", true, func() { clock = clock.Add(24 * time.Hour) }),
		Entry("again after one that failed", true, func() { note(attempt.Failed, attempt.Call, "a") }),
	)
})
