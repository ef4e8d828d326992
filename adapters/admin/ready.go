package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"
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
			found, err := check.result(r.Context())
			if err != nil {
				found.Problem, found.Detail = err.Error(), ""
			}
			switch {
			case err == nil:
			case check.Tolerated && status == http.StatusOK:
				body.Status = "degraded"
			default:
				status, body.Status = http.StatusServiceUnavailable, "not ready"
			}
			if !isLocal(r) {
				found.Detail = ""
				if err != nil {
					found.Problem = cmp.Or(found.Brief, found.Problem)
				}
			}
			body.Checks = append(body.Checks, found)
		}
		writeReport(w, status, body)
	}
}

func (c Check) result(ctx context.Context) (found Result, err error) {
	found.Name = c.Name
	if c.Describe != nil {
		found.Description = c.Describe()
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return found, c.Run(ctx)
}

func writeReport(w http.ResponseWriter, status int, body Readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client has disconnected
}

// Logged returns a check that logs when its result changes.
func Logged(check Check, logger *slog.Logger) Check {
	var mu sync.Mutex
	var failed bool
	run := check.Run
	check.Run = func(ctx context.Context) error {
		err := run(ctx)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil && !failed:
			logger.Warn("a readiness check fails", "check", check.Name, "error", err)
		case err == nil && failed:
			logger.Info("a readiness check passes again", "check", check.Name)
		}
		failed = err != nil
		return err
	}
	return check
}
