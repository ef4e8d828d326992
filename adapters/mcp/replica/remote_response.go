package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/pasteport/pasteport/domain/recovered"
)

// remoteResponse is the http.ResponseWriter of a forwarded call. It sends its buffer when it is
// flushed, when a message is full, and at the end. Each time it waits until the other replica has
// written the part to the client.
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

// Header implements http.ResponseWriter. It is sent with the first part.
func (r *remoteResponse) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *remoteResponse) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.status = status
	}
}

// Write fails after the response has ended or the client has gone.
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
	for len(r.buffered) >= chunkSize {
		if err := r.send(r.buffered[:chunkSize], part{}); err != nil {
			return 0, err
		}
		r.buffered = r.buffered[chunkSize:]
	}
	return len(p), nil
}

// FlushError is called by http.ResponseController.
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

// end sends the rest. A panic of the handler ends the response and not the process, as in net/http.
func (r *remoteResponse) end(panicked any) error {
	if panicked != nil {
		p := recovered.New(panicked)
		r.forwarder.Logger.Error("panic while answering a request of another replica", "type", p.Type, "stack", p.Stack)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended = true; panicked != nil {
		r.buffered = nil
	}
	return r.send(r.buffered, part{Last: true, Failed: panicked != nil})
}

// send sends a part until it is acknowledged, the call is cancelled, or the other replica is lost.
func (r *remoteResponse) send(payload []byte, p part) error {
	c := r.call
	if p.Number = r.sent; p.Number == 0 {
		p.Status, p.Header = r.status, r.header
	}
	for c.ctx.Err() == nil {
		answer, err := r.forwarder.ask(c.ctx, partTimeout, c.peer, frame{
			Kind:    kindPart,
			Call:    c.id,
			Part:    &p,
			payload: payload,
		})
		switch {
		case err == nil && answer.Kind == kindDone:
			r.sent++
			return nil
		case err == nil:
			c.cancel(errCancelled)
		case isGone(err), errors.Is(err, errTooLarge):
			c.cancel(err)
		default:
			waitRetry(c.ctx)
		}
	}
	return fmt.Errorf("answering another replica: %w", context.Cause(c.ctx))
}
