package mcp

import (
	"context"
	"sync/atomic"
)

// ending is the context of an answer that may be ended before its request is. Most are done before anybody waits for that or does it,
// so what it takes is made only then.
type ending struct {
	context.Context           // of the request
	who             *identity // nil while nobody knows who asks
	made            atomic.Pointer[endable]
	known           identity // what who is then
}

type endable struct {
	context.Context
	end context.CancelCauseFunc
}

// current is the context that holds at the moment.
func (e *ending) current() context.Context {
	if made := e.made.Load(); made != nil {
		return made.Context
	}
	return e.Context
}

// own returns what all who ask get.
func (e *ending) own() *endable {
	if made := e.made.Load(); made != nil {
		return made
	}
	ctx, end := context.WithCancelCause(e.Context)
	if mine := (&endable{ctx, end}); e.made.CompareAndSwap(nil, mine) {
		return mine
	}
	end(nil)
	return e.made.Load()
}

// end ends the context with a cause.
func (e *ending) end(cause error) { e.own().end(cause) }

// release gives back what was made; whoever asks from now on is told that all is over.
func (e *ending) release() {
	if made := e.made.Swap(over); made != nil {
		made.end(nil)
	}
}

// over is what all answers have in common that are done.
var over = func() *endable {
	ctx, end := context.WithCancelCause(context.Background())
	end(nil)
	return &endable{ctx, end}
}()

// Done implements context.Context.
func (e *ending) Done() <-chan struct{} { return e.own().Done() }

// Err implements context.Context.
func (e *ending) Err() error { return e.current().Err() }

// Value implements context.Context. The library looks for what ends a context in this way, too.
func (e *ending) Value(key any) any {
	if key == (identityKey{}) && e.who != nil {
		return e.who
	}
	if value := e.current().Value(key); value != nil {
		return value
	}
	return e.Context.Value(key)
}
