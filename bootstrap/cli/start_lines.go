package cli

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// startLines tells the operator what a service serves: as text, or as JSON
// lines with log-format json.
type startLines struct {
	out  io.Writer
	json *slog.Logger // nil for text
}

// startLinesTo returns lines that log-level does not hide, because they are
// results and not only a log.
func startLinesTo(out io.Writer, config service.Config) startLines {
	if config.LogFormat != service.LogJSON {
		return startLines{out: out}
	}
	return startLines{out, slog.New(slog.NewJSONHandler(out, nil))}
}

// print prints the text as a line, or the message with its attributes.
func (l startLines) print(text, message string, attributes ...any) {
	if l.json != nil {
		l.json.Info(message, attributes...)
		return
	}
	_, _ = fmt.Fprintln(l.out, text)
}

// upstreams prints a line for each upstream: that it works, or a warning with the
// cause and the remedy.
func (l startLines) upstreams(all []service.UpstreamStatus) {
	for _, upstream := range all {
		warning := ""
		if upstream.State.Remedy != "" {
			warning = "warning: "
		}
		l.print(
			fmt.Sprintf("%supstream %s: %s", warning, upstream.Name, upstream.State),
			"upstream",
			"upstream",
			upstream.Name,
			"works",
			!upstream.State.IsProblem(),
			"state",
			upstream.State.String(),
		)
	}
}

// clients prints the commands that connect clients on this computer to an
// MCP server in development.
func (l startLines) clients(config service.Config, endpoint string) {
	if !config.Development {
		return
	}
	for _, client := range localClients(config, endpoint) {
		text := fmt.Sprintf("  %-13s  %s", client.name, client.command)
		if client.needs != "" {
			text += fmt.Sprintf("\n  %-13s  needs %s", "", client.needs)
		}
		l.print(text, "command to connect a client", "client", client.name, "command", client.command,
			"needs", client.needs)
	}
}

// loggedError is an error that the log has already, so that it is not printed
// as text among JSON lines.
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
