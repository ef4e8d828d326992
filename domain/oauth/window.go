package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
)

// Window is a limit on the number of events in a time that begins with the first one. Its name is a keyed hash, so that the store learns neither
// the kind of event nor an address.
type Window struct {
	Name   Digest
	Limit  int
	Length time.Duration
}

// WindowCount is the state of a window. The zero value is a window that is over, or in which nothing was counted.
type WindowCount struct {
	Taken int
	Ends  time.Time
}

// Full returns how long the window stays full, 0 when it is not.
func (w Window) Full(count WindowCount, now time.Time) time.Duration {
	if count.Taken < w.Limit {
		return 0
	}
	return max(count.Ends.Sub(now), 0)
}

// MaxClockDifference is how much the clocks of replicas, or two times that concurrent requests have read, may differ.
const MaxClockDifference = 10 * time.Second

// Current returns the stored count of a window, or zero when the window is over. A window that ends later than its length and MaxClockDifference
// from now was opened by a wrong clock.
func (w Window) Current(stored WindowCount, now time.Time) WindowCount {
	if left := stored.Ends.Sub(now); left <= 0 || left > w.Length+MaxClockDifference {
		return WindowCount{}
	}
	return stored
}

// WindowCounter is a Store that counts for all processes that use it. Every error is an outage.
type WindowCounter interface {
	// Counts reads the windows and returns their states in the same order. It locks nothing.
	Counts(ctx context.Context, now time.Time, windows ...Window) ([]WindowCount, error)

	// Count adds one to each of the windows, which have different names, in one statement. It counts in full windows too.
	Count(ctx context.Context, now time.Time, windows ...Window) error

	// SharedByReplicas reports whether other machines use the same counters. DeleteExpired deletes windows that are over.
	SharedByReplicas() bool
}

// NewWindow returns the window of one subject, such as an address, under a limit of this name.
func NewWindow(keys seal.KeyRing, name, subject string, limit int, length time.Duration) (Window, error) {
	tags, err := keys.Tags("window\x00"+name, subject)
	if err != nil {
		return Window{}, fmt.Errorf("deriving the name of a window: %w", err)
	}
	return Window{Digest(tags[0]), limit, length}, nil
}
