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

// Check is a condition of readiness. The response contains the Description and the error that Run
// returns, so they must not contain a secret.
type Check struct {
	Name      string
	Run       func(context.Context) (Description, error)
	Tolerated bool // the service stays ready if the check fails; the failure is reported
}

// ready returns 503 while a check fails that is not tolerated. The body lists all results; readers
// on other computers get no Detail, and the Brief problem if a check has one.
func ready(checks []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusOK, Readiness{Status: "ok"}
		for _, check := range checks {
			ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second) // because probes do not wait long
			description, err := check.Run(ctx)
			cancel()
			found := Result{Name: check.Name, Description: description}
			if err != nil || !isLocal(r) {
				found.Detail = ""
			}
			switch {
			case err != nil && isLocal(r):
				found.Problem = err.Error()
			case err != nil:
				found.Problem = cmp.Or(found.Brief, err.Error())
			}
			switch {
			case err != nil && !check.Tolerated:
				status, body.Status = http.StatusServiceUnavailable, "not ready"
			case err != nil && status == http.StatusOK:
				body.Status = "degraded"
			}
			body.Checks = append(body.Checks, found)
		}
		writeReport(w, status, body)
	}
}

func writeReport(w http.ResponseWriter, status int, body Readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client has disconnected
}

// Logged returns a check that logs when its result changes.
func Logged(name string, run func(context.Context) error, logger *slog.Logger) Check {
	var mu sync.Mutex
	var failed bool
	return Check{Name: name, Run: func(ctx context.Context) (none Description, err error) {
		err = run(ctx)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil && !failed:
			logger.Warn("a readiness check fails", "check", name, "error", err)
		case err == nil && failed:
			logger.Info("a readiness check passes again", "check", name)
		}
		failed = err != nil
		return none, err
	}}
}
