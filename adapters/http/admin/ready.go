package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"
)

// checkLimit is how long one check may take; whoever asks for readiness usually waits no longer than a few seconds.
const checkLimit = 2 * time.Second

// Check is one condition of being ready. The operator reads its error, so that must not hold a secret.
type Check struct {
	Name      string
	Ask       func(context.Context) error
	Tolerated bool // its problem is told, but keeps nobody away
}

// finding is the outcome of a check; Problem is empty when it passed.
type finding struct {
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"`
}

// report is the body of /healthz and /readyz.
type report struct {
	Status string    `json:"status"`
	Checks []finding `json:"checks,omitempty"`
}

// lives answers as long as the process does.
func lives(w http.ResponseWriter, _ *http.Request) { tell(w, http.StatusOK, report{Status: "ok"}) }

// ready answers 503 while a check fails that is not tolerated, and says which.
func ready(checks []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, said := http.StatusOK, report{Status: "ok"}
		for _, check := range checks {
			found := finding{Name: check.Name}
			switch err := check.within(r.Context()); {
			case err == nil:
			case check.Tolerated && status == http.StatusOK:
				found.Problem, said.Status = err.Error(), "degraded"
			default:
				found.Problem = err.Error()
				status, said.Status = http.StatusServiceUnavailable, "not ready"
			}
			said.Checks = append(said.Checks, found)
		}
		tell(w, status, said)
	}
}

func (c Check) within(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	return c.Ask(ctx)
}

func tell(w http.ResponseWriter, status int, said report) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(said) // whoever asked is gone
}

// reuse is how long the outcome of a shared check stands.
const reuse = time.Second

// sharedCheck is a check that costs something. Only its flight writes to it.
type sharedCheck struct {
	Check
	logger *slog.Logger
	flight singleflight.Group
	ran    time.Time
	err    error
}

// Shared lets all who ask within a second share one run of a check, and logs when its outcome changes.
func Shared(check Check, logger *slog.Logger) Check {
	shared := &sharedCheck{Check: check, logger: logger}
	check.Ask = shared.ask
	return check
}

func (s *sharedCheck) ask(ctx context.Context) error {
	select {
	case done := <-s.flight.DoChan("", s.run):
		return done.Err
	case <-ctx.Done():
		return fmt.Errorf("there is no answer yet: %w", ctx.Err())
	}
}

// run finishes after its callers have left, so that the next caller gets its result.
func (s *sharedCheck) run() (any, error) {
	if time.Since(s.ran) < reuse {
		return nil, s.err
	}
	failed := s.err != nil
	s.err = s.within(context.Background())
	s.ran = time.Now()
	switch {
	case s.err != nil && !failed:
		s.logger.Warn("not ready: a check fails", "check", s.Name, "error", s.err)
	case s.err == nil && failed:
		s.logger.Info("a check that failed passes again", "check", s.Name)
	}
	return nil, s.err
}
