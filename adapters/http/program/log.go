package program

import (
	"strings"

	"golang.org/x/time/rate"
)

const (
	loggedLine  = 4 << 10 // bytes
	linesPerSec = 10
	linesAtOnce = 100
)

// newStderr returns a function that logs a line of the standard error, unless it contains the key or there are too many (U25).
func (u *Upstream) newStderr(s *session, repeats func(text string) bool) func(line string) {
	limit, skipped := rate.NewLimiter(linesPerSec, linesAtOnce), 0
	return func(line string) {
		if !limit.Allow() {
			skipped++
			return
		}
		text := line[:min(len(line), loggedLine)]
		if repeats(line) { // the whole line, because the key may be cut off in the middle
			text = "(a line with the key is left out)"
		}
		attributes := []any{"session", s.label(), "grant", s.grant, "line", strings.ToValidUTF8(text, "\ufffd")}
		if skipped > 0 {
			attributes = append(attributes, "skipped", skipped)
			skipped = 0
		}
		u.options.Logger.Info("stderr of a program", attributes...)
	}
}
