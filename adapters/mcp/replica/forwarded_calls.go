package replica

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"
)

// forwardedCalls holds the calls of this replica with all others, in both directions.
type forwardedCalls struct {
	mu     sync.Mutex
	byID   map[string]*forwardedCall
	byPeer map[string]map[*forwardedCall]struct{}
}

func newForwardedCalls() *forwardedCalls {
	return &forwardedCalls{byID: map[string]*forwardedCall{}, byPeer: map[string]map[*forwardedCall]struct{}{}}
}

// add adds a call, and reports whether its peer is new.
func (f *forwardedCalls) add(c *forwardedCall) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[c.id] = c
	if f.byPeer[c.peer] == nil {
		f.byPeer[c.peer], first = map[*forwardedCall]struct{}{}, true
	}
	f.byPeer[c.peer][c] = struct{}{}
	return first
}

func (f *forwardedCalls) remove(c *forwardedCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byID, c.id)
	delete(f.byPeer[c.peer], c)
}

// find returns the call with that id and that peer, nil if there is none.
func (f *forwardedCalls) find(id, peer string) *forwardedCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.byID[id]; c != nil && c.peer == peer {
		return c
	}
	return nil
}

// removeIdle removes a peer without calls, and reports whether it did.
func (f *forwardedCalls) removeIdle(peer string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.byPeer[peer]) > 0 {
		return false
	}
	delete(f.byPeer, peer)
	return true
}

// cancelAll cancels all calls with a peer.
func (f *forwardedCalls) cancelAll(peer string, cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.byPeer[peer] {
		c.cancel(cause)
	}
}

func (f *forwardedCalls) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byID)
}

// forwardedCall is a request between the replica that received it from a client and the replica
// that owns its session.
type forwardedCall struct {
	id, peer string // peer is the other replica
	ctx      context.Context
	cancel   context.CancelCauseFunc

	// Only in the replica that received the request.
	body  []byte
	ended chan struct{} // closed after the last part of the response
	mu    sync.Mutex
	out   http.ResponseWriter // nil after close
	parts int                 // written
	begun bool                // the response has a status
}

// reply returns the answer to a frame of the other replica. The receiver is nil for an unknown
// call.
func (c *forwardedCall) reply(f frame) frame {
	switch {
	case c == nil:
	case f.Kind == kindCancel:
		c.cancel(errCancelled)
		return frame{Kind: kindDone}
	case f.Kind == kindBody && 0 <= f.Offset && f.Offset <= len(c.body):
		return frame{Kind: kindDone, payload: c.body[f.Offset:min(len(c.body), f.Offset+chunkSize)]}
	case f.Kind == kindPart && f.Part != nil:
		return frame{Kind: c.writePart(*f.Part, f.payload)}
	}
	return frame{Kind: kindGone}
}

// writePart writes the next part of the response to the client before it is acknowledged, so that a
// slow client slows down the tool. It ignores a part that it has written, because the sender
// repeats parts that are not acknowledged.
func (c *forwardedCall) writePart(p part, payload []byte) kind {
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

// close ends the response, and reports whether it has begun.
func (c *forwardedCall) close() (begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = nil
	return c.begun
}

// seenCalls holds the ids of calls for longer than their messages are fresh, so that a replayed
// message is refused.
type seenCalls struct {
	mu           sync.Mutex
	rotated      time.Time
	older, newer map[string]struct{}
}

// first adds a call, and reports whether it is new.
func (s *seenCalls) first(call string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newer == nil || now.Sub(s.rotated) > 2*freshness { // the clock of a sender may be ahead by freshness
		s.rotated, s.older, s.newer = now, s.newer, map[string]struct{}{}
	}
	_, old := s.older[call]
	_, recent := s.newer[call]
	s.newer[call] = struct{}{}
	return !old && !recent
}
