package limits

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/pasteport/pasteport/domain/oauth"
)

const failuresWindow = time.Minute

// Failures is an oauth.FailureLimit of this process alone. It is safe for concurrent use.
type Failures struct {
	limit  int
	memory *Memory
}

var _ oauth.FailureLimit = (*Failures)(nil)

// NewFailures returns a limit on the failures of an address in a minute.
func NewFailures(limit int) *Failures { return &Failures{limit, NewMemory()} }

// Failed implements oauth.FailureLimit.
func (f *Failures) Failed(address string, now time.Time) (wait time.Duration) {
	window := oauth.Window{Name: sha256.Sum256([]byte(address)), Limit: f.limit, Length: failuresWindow}
	counts, _ := f.memory.Counts(context.Background(), now, window) // memory never fails
	_ = f.memory.Count(context.Background(), now, window)
	return window.Wait(counts[0], now)
}
