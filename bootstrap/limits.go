package bootstrap

import (
	"time"

	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
)

// newStarts limits how often a person starts a program, because each start costs much more than the
// request for it: thirty times in a minute, or three times for each process that they may have.
func newStarts(maxProcesses int) func(person string) bool {
	starts, perMinute := limits.NewRates(), max(30, 3*maxProcesses)
	return func(person string) bool {
		return starts.Take(time.Now(), oauth.Rate{Of: person, Events: 1, PerMinute: perMinute}) == 0
	}
}
