// Package recovered describes a recovered panic for a log. A Panic has the type of the value and
// the stack, but neither the value nor the arguments of the functions, because both may hold a
// token.
package recovered

import (
	"fmt"
	"runtime"
	"strings"
)

const (
	maxFrames = 64
	skipped   = 2 // runtime.Callers and New
)

// Panic is a recovered panic, as an error.
type Panic struct {
	Type  string // of the value
	Stack string // two lines for each function, its name and its file:line; the innermost first
}

// New describes the value of recover. Call it in the deferred function, where the stack of the
// panic still exists.
func New(value any) *Panic {
	var found [maxFrames]uintptr
	frames := runtime.CallersFrames(found[:runtime.Callers(skipped, found[:])])
	var text strings.Builder
	for {
		frame, more := frames.Next()
		_, _ = fmt.Fprintf(&text, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
		if !more {
			return &Panic{fmt.Sprintf("%T", value), text.String()}
		}
	}
}

func (p *Panic) Error() string { return "panic with a value of type " + p.Type + "\n" + p.Stack }
