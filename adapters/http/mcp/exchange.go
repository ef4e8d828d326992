package mcp

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"

	"github.com/pasteport/pasteport/domain/oauth"
)

var errGivenUp = errors.New("the other replica has given up")

// exchange is one request under way between the replica that a client has asked and the one that holds its session.
type exchange struct {
	id, with string // the other replica
	ctx      context.Context
	cancel   context.CancelCauseFunc

	// What only the replica has that was asked.
	body  []byte
	ended chan struct{} // by the last part of the answer
	mu    sync.Mutex
	out   http.ResponseWriter // nil when nothing may be written any more
	parts int                 // that were written
	begun bool                // the answer has a status
}

// reply answers what the other replica says about the exchange; there may be none.
func (e *exchange) reply(f frame) frame {
	switch {
	case e == nil:
	case f.Kind == kindCancel:
		e.cancel(errGivenUp)
		return frame{Kind: kindDone}
	case f.Kind == kindBody && 0 <= f.Offset && f.Offset <= len(e.body):
		return frame{Kind: kindDone, payload: e.body[f.Offset:min(len(e.body), f.Offset+chunk)]}
	case f.Kind == kindPart && f.Part != nil:
		return frame{Kind: e.take(*f.Part, f.payload)}
	}
	return frame{Kind: kindGone}
}

// take writes the next part of the answer. Its sender waits for this, so that a slow client slows down the tool (R1), and repeats a
// part when it does not hear of it.
func (e *exchange) take(p part, payload []byte) kind {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case p.Number < e.parts:
		return kindDone
	case e.out == nil, p.Number > e.parts:
		return kindGone
	}
	e.parts++
	if err := e.write(p, payload); err != nil {
		e.cancel(err)
		return kindGone
	}
	if p.Last {
		close(e.ended)
	}
	return kindDone
}

func (e *exchange) write(p part, payload []byte) error {
	if p.Failed {
		return errPanic
	}
	if p.Status != 0 && !e.begun {
		e.begun = true
		maps.Copy(e.out.Header(), p.Header)
		e.out.WriteHeader(p.Status)
	}
	if len(payload) > 0 {
		if _, err := e.out.Write(payload); err != nil {
			return err
		}
	}
	if p.Last {
		return nil
	}
	return http.NewResponseController(e.out).Flush()
}

// close ends the writing, and reports whether the answer had begun.
func (e *exchange) close() (begun bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out = nil
	return e.begun
}

// exchanges are those of one replica with all others, in both directions.
type exchanges struct {
	mu    sync.Mutex
	known map[string]*exchange
	peers map[string]map[*exchange]struct{}
}

func newExchanges() *exchanges {
	return &exchanges{known: map[string]*exchange{}, peers: map[string]map[*exchange]struct{}{}}
}

// add reports whether it is the first one with that replica.
func (x *exchanges) add(e *exchange) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.known[e.id] = e
	if x.peers[e.with] == nil {
		x.peers[e.with], first = map[*exchange]struct{}{}, true
	}
	x.peers[e.with][e] = struct{}{}
	return first
}

func (x *exchanges) remove(e *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.known, e.id)
	delete(x.peers[e.with], e)
}

// find returns the exchange of that id with that replica, nil when there is none.
func (x *exchanges) find(id, with string) *exchange {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.known[id]; e != nil && e.with == with {
		return e
	}
	return nil
}

// forsake forgets a replica with which nothing is under way, and reports whether that is so.
func (x *exchanges) forsake(replica string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.peers[replica]) > 0 {
		return false
	}
	delete(x.peers, replica)
	return true
}

// lose ends all exchanges with a replica that is not heard any more.
func (x *exchanges) lose(replica string, cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for e := range x.peers[replica] {
		e.cancel(cause)
	}
}

func (x *exchanges) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.known)
}

// isGone reports that the session cannot come back: nobody answers for it any more.
func isGone(err error) bool { return errors.Is(err, oauth.ErrNotFound) }
