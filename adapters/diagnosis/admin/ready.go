package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"
)

// checkTimeout limits a check, because probes wait only a few seconds.
const checkTimeout = 2 * time.Second

// Check is a condition of readiness. The response contains its error, which must not contain a
// secret.
type Check struct {
	Name      string
	Run       func(context.Context) error
	Tolerated bool // the service stays ready if the check fails; the failure is reported

	Describe func() Description // nil for none
}

// ready returns 503 while a check fails that is not tolerated. The body lists all results.
func ready(checks []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusOK, Readiness{Status: "ok"}
		for _, check := range checks {
			found, err := check.described(), check.within(r.Context())
			if err != nil && found.Brief != "" && !isLocal(r) {
				err = errors.New(found.Brief)
			}
			switch {
			case err == nil:
			case check.Tolerated && status == http.StatusOK:
				found.Problem, found.Detail, body.Status = err.Error(), "", "degraded"
			default:
				found.Problem, found.Detail = err.Error(), ""
				status, body.Status = http.StatusServiceUnavailable, "not ready"
			}
			if !isLocal(r) {
				found.Detail = ""
			}
			body.Checks = append(body.Checks, found)
		}
		writeReport(w, status, body)
	}
}

func (c Check) described() Result {
	found := Result{Name: c.Name}
	if c.Describe != nil {
		found.Description = c.Describe()
	}
	return found
}

func (c Check) within(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return c.Run(ctx)
}

func writeReport(w http.ResponseWriter, status int, body Readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client has disconnected
}

// resultLife is the time in which the result of a shared check is reused.
const resultLife = time.Second

// sharedCheck runs an expensive check once for several callers. Only run writes its fields;
// singleflight runs it one at a time.
type sharedCheck struct {
	Check
	logger *slog.Logger
	flight singleflight.Group
	ran    time.Time
	err    error
}

// Shared returns a check whose callers within a second share one run. It logs when the result
// changes.
func Shared(check Check, logger *slog.Logger) Check {
	shared := &sharedCheck{Check: check, logger: logger}
	check.Run = shared.wait
	return check
}

func (s *sharedCheck) wait(ctx context.Context) error {
	select {
	case done := <-s.flight.DoChan("", s.run):
		return done.Err
	case <-ctx.Done():
		return fmt.Errorf("the check has not finished: %w", ctx.Err())
	}
}

// run does not stop when its callers do, so that the next caller gets the result.
func (s *sharedCheck) run() (any, error) {
	if time.Since(s.ran) < resultLife {
		return nil, s.err
	}
	failed := s.err != nil
	s.err = s.within(context.Background())
	s.ran = time.Now()
	switch {
	case s.err != nil && !failed:
		s.logger.Warn("a readiness check fails", "check", s.Name, "error", s.err)
	case s.err == nil && failed:
		s.logger.Info("a readiness check passes again", "check", s.Name)
	}
	return nil, s.err
}
