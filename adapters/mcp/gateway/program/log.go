package program

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

const (
	loggedLine  = 4 << 10 // bytes
	linesPerSec = 10
	linesAtOnce = 100

	quotedLines = 3
	quotedLine  = 200 // bytes
)

// output logs the lines that a program prints and that are not messages, and quotes the last ones
// when the program has ended.
type output struct {
	session *session
	repeats func(text string) bool // reports whether a text contains the key

	mu      sync.Mutex
	limit   *rate.Limiter
	skipped int
	last    []string
}

// of returns a function that logs a line of the stream, and keeps it for quote.
func (o *output) of(stream string) func(line string) {
	return func(line string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if strings.TrimSpace(line) != "" {
			quoted := line
			if len(line) > loggedLine {
				quoted = "(a long line)"
			}
			o.last = append(o.last, quoted)
			o.last = o.last[max(0, len(o.last)-quotedLines):]
		}
		o.log(stream+" of a program", "line", line)
	}
}

// unmatched logs the id of an answer that no call waits for.
func (o *output) unmatched(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log("an answer of a program matches no open call", "id", id)
}

// log logs what the program has printed, unless there is too much.
func (o *output) log(message, attribute, text string) {
	if !o.limit.Allow() {
		o.skipped++
		return
	}
	attributes := []any{"session", o.session.label(), "grant", o.session.grant, attribute, o.clean(text, loggedLine)}
	if o.skipped > 0 {
		attributes = append(attributes, "skipped", o.skipped)
		o.skipped = 0
	}
	o.session.upstream.config.Logger.Info(message, attributes...)
}

// clean returns the beginning of a line without the key.
func (o *output) clean(line string, length int) string {
	if o.repeats(line) { // the whole line, because the key may be cut off in the middle
		return "(a line with the key is left out)"
	}
	return strings.ToValidUTF8(line[:min(len(line), length)], "\ufffd")
}

// quote adds the last lines to the error of a program that has failed. It is for the log: the lines
// may concern the operator.
func (o *output) quote(cause error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.last) == 0 || errors.Is(cause, errClosed) {
		return cause
	}
	var lines []string
	for _, line := range o.last {
		lines = append(lines, o.clean(line, quotedLine))
	}
	return fmt.Errorf("%w; the last lines that it printed: %q", cause, lines)
}
