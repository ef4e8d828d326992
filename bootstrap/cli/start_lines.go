package cli

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// startLines prints what a service serves: as text, or with log-format json as the messages of JSON
// lines. log-level does not hide them, because they are results and not only a log.
func startLines(out io.Writer, config service.Config) func(format string, values ...any) {
	if config.LogFormat != service.LogJSON {
		return func(format string, values ...any) { _, _ = fmt.Fprintf(out, format+"\n", values...) }
	}
	logger := slog.New(slog.NewJSONHandler(out, nil))
	return func(format string, values ...any) { logger.Info(fmt.Sprintf(format, values...)) }
}

// loggedError is an error that the log has already, so that it is not printed as text among JSON
// lines.
type loggedError struct{ error }

// Unwrap returns the error, whose kind chooses the exit code.
func (e loggedError) Unwrap() error { return e.error }

// logged logs an error if log lines are JSON.
func logged(err error, config service.Config, errOut io.Writer) error {
	if err == nil || config.LogFormat != service.LogJSON {
		return err
	}
	slog.New(slog.NewJSONHandler(errOut, nil)).Error("the service failed", "error", err.Error())
	return loggedError{err}
}
