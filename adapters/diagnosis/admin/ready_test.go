package admin

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/features/suite"
)

func TestAdmin(t *testing.T) {
	suite.Run(t, "Admin listener")
}

var _ = Describe("A shared check", Label("operations"), func() {
	const askers = 20
	var runs atomic.Int32
	BeforeEach(func() { runs.Store(0) })

	It("runs once for concurrent callers, and for callers within a second", func(ctx SpecContext) {
		release := make(chan struct{})
		check := Shared(Check{Name: "slow", Run: func(context.Context) error {
			runs.Add(1)
			<-release
			return errors.New("full")
		}}, slog.New(slog.DiscardHandler))
		answers := make(chan error, askers)
		for range askers {
			go func() { answers <- check.Run(ctx) }()
		}
		Eventually(runs.Load).Should(BeEquivalentTo(1))
		Consistently(answers, "50ms").ShouldNot(Receive())
		close(release)
		for range askers {
			Eventually(answers).Should(Receive(MatchError("full")))
		}
		Expect(check.Run(ctx)).To(MatchError("full"))
		Expect(runs.Load()).To(BeEquivalentTo(1))
		Eventually(func() int32 {
			_ = check.Run(ctx)
			return runs.Load()
		}).WithTimeout(5 * time.Second).Should(BeEquivalentTo(2))
	}, SpecTimeout(20*time.Second))

	It("returns when its caller stops waiting", func(ctx SpecContext) {
		release := make(chan struct{})
		defer close(release)
		check := Shared(Check{Name: "hung", Run: func(context.Context) error {
			<-release
			return nil
		}}, slog.New(slog.DiscardHandler))
		impatient, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		Expect(check.Run(impatient)).To(MatchError(context.DeadlineExceeded))
	}, SpecTimeout(10*time.Second))

	It("logs only changes of its result", func(ctx SpecContext) {
		log := gbytes.NewBuffer()
		var failure error
		shared := &sharedCheck{logger: slog.New(slog.NewTextHandler(log, nil)),
			Check: Check{Name: "disk", Run: func(context.Context) error {
				return failure
			}}}
		ask := func() { // as if a second had passed
			shared.ran = time.Time{}
			_ = shared.wait(ctx)
		}
		ask()
		failure = errors.New("full")
		ask()
		ask()
		failure = nil
		ask()
		ask()
		Expect(string(log.Contents())).To(MatchRegexp(
			`^[^\n]+level=WARN msg="a readiness check fails" check=disk error=full\n[^\n]+level=INFO msg="a ` +
				`readiness check passes again" check=disk\n$`))
	})
})
