package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
)

// remoteResponse is the ResponseWriter of a forwarded call. It sends what was written when it is flushed, when it fills a message, and at the
// end, and waits each time until the other replica has written it to the client.
type remoteResponse struct {
	forwarder *Forwarder
	call      *forwardedCall

	mu       sync.Mutex
	header   http.Header
	status   int
	sent     int // parts
	buffered []byte
	ended    bool
}

// Header is sent with the first part.
func (r *remoteResponse) Header() http.Header { return r.header }

// WriteHeader sets the status; the first call counts.
func (r *remoteResponse) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.status = status
	}
}

// Write fails once the response has ended, or the client has gone.
func (r *remoteResponse) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := context.Cause(r.call.ctx); err != nil {
		return 0, fmt.Errorf("writing to another replica: %w", err)
	}
	if r.ended {
		return 0, http.ErrHandlerTimeout
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.buffered = append(r.buffered, p...)
	for len(r.buffered) >= chunk {
		if err := r.send(r.buffered[:chunk], part{}); err != nil {
			return 0, err
		}
		r.buffered = r.buffered[chunk:]
	}
	return len(p), nil
}

// FlushError is what http.ResponseController calls.
func (r *remoteResponse) FlushError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || len(r.buffered) == 0 && r.sent > 0 {
		return nil
	}
	err := r.send(r.buffered, part{})
	r.buffered = nil
	return err
}

// end sends the rest. A panic ends the response, as in an HTTP server, and not the process.
func (r *remoteResponse) end(panicked any) error {
	if panicked != nil {
		r.forwarder.Logger.Error("panic while answering a request of another replica", "panic", panicked, "stack", string(debug.Stack()))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended = true; panicked != nil {
		r.buffered = nil
	}
	return r.send(r.buffered, part{Last: true, Failed: panicked != nil})
}

// send repeats a part until it has arrived, the call is cancelled, or the other replica is lost.
func (r *remoteResponse) send(payload []byte, p part) error {
	c := r.call
	if p.Number = r.sent; p.Number == 0 {
		p.Status, p.Header = r.status, r.header
	}
	for c.ctx.Err() == nil {
		answer, err := r.forwarder.ask(c.ctx, takeLimit, c.peer, frame{Kind: kindPart, Call: c.id, Part: &p, payload: payload})
		switch {
		case err == nil && answer.Kind == kindDone:
			r.sent++
			return nil
		case err == nil:
			c.cancel(errCancelled)
		case isGone(err), errors.Is(err, errTooLarge):
			c.cancel(err)
		default:
			pause(c.ctx)
		}
	}
	return fmt.Errorf("answering another replica: %w", context.Cause(c.ctx))
}
