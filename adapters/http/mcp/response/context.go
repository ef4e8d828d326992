package response

import (
	"context"
	"sync/atomic"
)

// lazyCancelContext is the context of a request whose response may be ended earlier. Most responses are done before anything waits for that
// or does it, so the cancelable context is made only then.
type lazyCancelContext struct {
	context.Context           // of the request
	who             *Identity // nil until the caller is known
	made            atomic.Pointer[cancelContext]
	known           Identity // what who is then
}

type cancelContext struct {
	context.Context
	end context.CancelCauseFunc
}

// current is the context that holds at the moment.
func (c *lazyCancelContext) current() context.Context {
	if made := c.made.Load(); made != nil {
		return made.Context
	}
	return c.Context
}

// own returns what all who ask get.
func (c *lazyCancelContext) own() *cancelContext {
	if made := c.made.Load(); made != nil {
		return made
	}
	ctx, end := context.WithCancelCause(c.Context)
	if mine := (&cancelContext{ctx, end}); c.made.CompareAndSwap(nil, mine) {
		return mine
	}
	end(nil)
	return c.made.Load()
}

// end ends the context with a cause.
func (c *lazyCancelContext) end(cause error) { c.own().end(cause) }

// release frees the context. Later callers get one that has ended.
func (c *lazyCancelContext) release() {
	if made := c.made.Swap(over); made != nil {
		made.end(nil)
	}
}

// over is what all answers have in common that are done.
var over = func() *cancelContext {
	ctx, end := context.WithCancelCause(context.Background())
	end(nil)
	return &cancelContext{ctx, end}
}()

// Done implements context.Context.
func (c *lazyCancelContext) Done() <-chan struct{} { return c.own().Done() }

// Err implements context.Context.
func (c *lazyCancelContext) Err() error { return c.current().Err() }

// Value implements context.Context. The library looks for what ends a context in this way, too.
func (c *lazyCancelContext) Value(key any) any {
	if key == (identityKey{}) && c.who != nil {
		return c.who
	}
	if value := c.current().Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}
