package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/gateway/check"
)

// settled is how long after the last failed call a check without a problem is believed,
// unless another check had one.
const settled = time.Minute

// calls keeps what the last call has shown. Checks come at intervals, and
// ask for less than calls do.
type calls struct {
	failed chan struct{} // receives after a failed call

	mu        sync.Mutex
	err       error // of the last call
	at        time.Time
	confirmed bool // a check has found a problem since
}

func newCalls() *calls { return &calls{failed: make(chan struct{}, 1)} }

// end records the end of a call. Its error is nil unless the server was to blame.
func (c *calls) end(err error) {
	if errors.Is(err, context.Canceled) { // by the client
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = err; err == nil {
		c.confirmed = false
		return
	}
	c.at = time.Now()
	c.askCheck()
}

// askCheck asks for a check. It does not wait for one.
func (c *calls) askCheck() {
	select {
	case c.failed <- struct{}{}:
	default:
	}
}

// checked forgets a failed call after a check that found the server working, if the outage
// has evidently passed: a check had confirmed it, or the call was long ago. A server can
// answer checks and fail calls.
func (c *calls) checked(began time.Time, found check.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err == nil:
	case !found.MayWork():
		c.confirmed = true
	case c.at.Before(began) && (c.confirmed || began.Sub(c.at) >= settled):
		c.err, c.confirmed = nil, false
	}
}

// health returns the error of the last call, nil after a call that the server has answered.
func (c *calls) health() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	var failure *gateway.Failure
	if errors.As(c.err, &failure) && failure.Cause != nil {
		return fmt.Errorf("the last call failed: %w", failure.Cause)
	}
	return fmt.Errorf("the last call failed: %w", c.err)
}
