package bootstrap

import (
	"errors"
	"time"

	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/domain/oauth"
)

// WithSharedLimits counts wrong tokens in the store, for all processes that share it. It is the
// default for a store on a database server. NewOAuthServer fails if the store is not an
// oauth.WindowCounter.
func WithSharedLimits() OAuthOption {
	return func(o *oauthOptions) { o.sharedLimits = true }
}

// counterIn returns the store as a counter, nil when each process counts for itself.
func counterIn(store oauth.Store, forced bool) (oauth.WindowCounter, error) {
	counter, counts := store.(oauth.WindowCounter)
	switch {
	case forced && !counts:
		return nil, errors.New(
			"the store cannot count for several processes: implement oauth.WindowCounter, or omit WithSharedLimits")
	case counts && (forced || counter.SharedByReplicas()):
		return counter, nil
	}
	return nil, nil
}

func newGuesses(counter oauth.WindowCounter, config oauth.Config, settings *oauth.Settings) oauth.GuessLimit {
	if counter == nil {
		counter = limits.NewMemory()
	}
	return limits.NewGuesses(counter, settings, config.Logger)
}

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
