package program

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

// eventSeparator is between the stream and the index in the id of an event; neither contains it.
const eventSeparator = "_"

// stream is the events of one response. A client whose connection breaks may resume it with another
// request.
type stream struct {
	id        string // "" for messages that belong to no call
	isInitial bool   // answers initialize
	isJSON    bool   // its client gets only the answers
	open      int    // calls without an answer; guarded by the mutex of the session

	attached atomic.Bool // a client reads; without the mutex, which a slow client may block

	mu     sync.Mutex
	next   int                 // index of the next event
	to     http.ResponseWriter // nil while no client reads
	done   chan struct{}       // of the response in to
	isDone bool                // it has all its answers
}

func newStream(id string) *stream { return &stream{id: id} }

func newStreamID() string { return rand.Text() }

// attach sets the response, and ends the response before it. The channel is closed when the
// response has to end.
func (o *stream) attach(w http.ResponseWriter) (done chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.attachLocked(w)
}

func (o *stream) attachLocked(w http.ResponseWriter) (done chan struct{}) {
	o.finish()
	o.to, o.done = w, make(chan struct{})
	o.attached.Store(true)
	return o.done
}

// detach must be called before the handler of the response returns.
func (o *stream) detach(done chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done == done {
		o.finish()
	}
}

// finish ends the response.
func (o *stream) finish() {
	if o.done != nil {
		close(o.done)
		o.to, o.done = nil, nil
		o.attached.Store(false)
	}
}

func (o *stream) isSent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next > 0
}

// write writes an event to the client of a stream, if one reads. The mutex of the stream is locked.
func (s *session) write(o *stream, event []byte) {
	if o.to == nil {
		return
	}
	_, err := o.to.Write(event)
	if err == nil {
		err = http.NewResponseController(o.to).Flush()
	}
	if err != nil { // the client may resume
		o.finish()
		return
	}
	s.upstream.events.Wrote(s.id, event)
}

// send sends a message as the next event of a stream. The last one ends the response.
func (s *session) send(o *stream, body []byte, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	index := o.next
	o.next++
	_ = s.upstream.events.Append(context.Background(), s.id, o.id, body) // an event that is not kept cannot be resumed
	s.write(o, o.event(index, body))
	if last {
		o.isDone = true
		o.finish()
	}
}

// event returns an event. One without a body only has the id from which the client can resume.
func (o *stream) event(index int, body []byte) []byte {
	name := "message"
	if body == nil {
		name = "prime"
	}
	return message.Event(name, o.id+eventSeparator+strconv.Itoa(index), body)
}

// resume sends the events after index, and attaches the response for further ones. It returns nil
// if there will be none.
func (s *session) resume(w http.ResponseWriter, r *http.Request, o *stream, index int) (done chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var missed [][]byte
	for body, err := range s.upstream.events.After(r.Context(), s.id, o.id, index) {
		if err != nil {
			return nil, err
		}
		missed = append(missed, body)
	}
	begin(w)
	done = o.attachLocked(w)
	s.write(o, message.OpeningComment)
	first := o.next - len(missed)
	if o.isDone {
		first = index + 1
	}
	for i, body := range missed {
		if len(body) > 0 {
			s.write(o, o.event(first+i, body))
		}
	}
	if o.isDone {
		o.finish()
		return nil, nil
	}
	return done, nil
}
