package bootstrap

import (
	"time"

	"github.com/pasteport/pasteport/adapters/limits"
)

const (
	leastStarts      = 30 // of one person at once
	startsPerProcess = 3  // that the person may have
	startInterval    = 2 * time.Second
)

// newStarts limits how often a person starts a program, because each start costs much more than the
// request for it.
func newStarts(maxProcesses int) func(person string) bool {
	starts := limits.NewRates[string](startInterval, max(leastStarts, startsPerProcess*maxProcesses))
	return func(person string) bool { return starts.Take(person, time.Now()) == 0 }
}
