package replica

import (
	"context"
	"maps"
	"net/http"
	"sync"
)

// forwardedCall is one request under way between the replica that got it from a client and the replica that owns its session.
type forwardedCall struct {
	id, peer string // peer is the other replica
	ctx      context.Context
	cancel   context.CancelCauseFunc

	// Only in the replica that got the request.
	body  []byte
	ended chan struct{} // closed after the last part of the response
	mu    sync.Mutex
	out   http.ResponseWriter // nil after close
	parts int                 // written
	begun bool                // the response has a status
}

// reply answers a frame of the other replica. The receiver is nil when there is no such call.
func (c *forwardedCall) reply(f frame) frame {
	switch {
	case c == nil:
	case f.Kind == kindCancel:
		c.cancel(errCancelled)
		return frame{Kind: kindDone}
	case f.Kind == kindBody && 0 <= f.Offset && f.Offset <= len(c.body):
		return frame{Kind: kindDone, payload: c.body[f.Offset:min(len(c.body), f.Offset+chunk)]}
	case f.Kind == kindPart && f.Part != nil:
		return frame{Kind: c.take(*f.Part, f.payload)}
	}
	return frame{Kind: kindGone}
}

// take writes the next part of the response. Its sender waits for that, so that a slow client slows down the tool (R1), and repeats a part that
// is not acknowledged.
func (c *forwardedCall) take(p part, payload []byte) kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.Number < c.parts:
		return kindDone
	case c.out == nil, p.Number > c.parts:
		return kindGone
	}
	c.parts++
	if err := c.write(p, payload); err != nil {
		c.cancel(err)
		return kindGone
	}
	if p.Last {
		close(c.ended)
	}
	return kindDone
}

func (c *forwardedCall) write(p part, payload []byte) error {
	if p.Failed {
		return errPanic
	}
	if p.Status != 0 && !c.begun {
		c.begun = true
		maps.Copy(c.out.Header(), p.Header)
		c.out.WriteHeader(p.Status)
	}
	if len(payload) > 0 {
		if _, err := c.out.Write(payload); err != nil {
			return err
		}
	}
	if p.Last {
		return nil
	}
	return http.NewResponseController(c.out).Flush()
}

// close ends writing, and reports whether the response had begun.
func (c *forwardedCall) close() (begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = nil
	return c.begun
}
