package bootstrap

import (
	"time"

	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
)

// The starts of one person in a minute.
const (
	leastStarts      = 30
	startsPerProcess = 3 // that the person may have
)

// newStarts limits how often a person starts a program, because each start costs much more than the
// request for it.
func newStarts(maxProcesses int) func(person string) bool {
	starts, perMinute := limits.NewRates(), max(leastStarts, startsPerProcess*maxProcesses)
	return func(person string) bool {
		return starts.Take(time.Now(), oauth.Rate{Of: person, Events: 1, PerMinute: perMinute}) == 0
	}
}
