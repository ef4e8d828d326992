package program

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
)

// eventSeparator is between the stream and the index in the id of an event; neither contains it.
const eventSeparator = "_"

// eventStream is the events of one response. A client whose connection breaks may resume it with
// another request.
type eventStream struct {
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

// attach sets the response, and ends the response before it. The channel is closed when the
// response has to end.
func (o *eventStream) attach(w http.ResponseWriter) (done chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.attachLocked(w)
}

func (o *eventStream) attachLocked(w http.ResponseWriter) (done chan struct{}) {
	o.finish()
	o.to, o.done = w, make(chan struct{})
	o.attached.Store(true)
	return o.done
}

// detach must be called before the handler of the response returns.
func (o *eventStream) detach(done chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done == done {
		o.finish()
	}
}

// finish ends the response. The mutex is locked.
func (o *eventStream) finish() {
	if o.done != nil {
		close(o.done)
		o.to, o.done = nil, nil
		o.attached.Store(false)
	}
}

// write writes an event to the client of a stream, if one reads. The mutex of the stream is locked.
func (s *session) write(o *eventStream, event []byte) {
	if o.to == nil {
		return
	}
	_, err := o.to.Write(event) //nolint:gosec // no browser takes an event stream for a page
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
func (s *session) send(o *eventStream, body []byte, last bool) {
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
func (o *eventStream) event(index int, body []byte) []byte {
	name := "message"
	if body == nil {
		name = "prime"
	}
	return message.Event(name, o.id+eventSeparator+strconv.Itoa(index), body)
}

// resume sends the events after index, and attaches the response for further ones. It returns nil
// if there will be none.
func (s *session) resume(w http.ResponseWriter, r *http.Request, o *eventStream, index int) (
	done chan struct{}, err error) {
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
	if o.isDone { // listen may have made o for this request, so next is not known
		first = index + 1
	}
	for i, body := range missed {
		if len(body) > 0 { // not the one that only begins a stream
			s.write(o, o.event(first+i, body))
		}
	}
	if o.isDone {
		o.finish()
		return nil, nil
	}
	return done, nil
}

// listen answers a GET in a session: with the messages that belong to no call, or with the rest of
// a response whose connection broke.
func (s *session) listen(w http.ResponseWriter, r *http.Request) {
	if !stream.Accepts(r, message.EventStream) {
		stream.NotAcceptable(w, "a stream of "+message.EventStream)
		return
	}
	last := r.Header.Get(message.LastEventHeader)
	id, number, found := strings.Cut(last, eventSeparator)
	index, err := strconv.Atoi(number)
	if last != "" && (!found || err != nil || index < 0) {
		message.WriteError(w, http.StatusBadRequest, "Bad Request: Last-Event-ID is not an event id")
		return
	}
	s.mu.Lock()
	out := s.streams[id]
	if id == "" {
		out = s.listening
	}
	if last == "" { // only what no client has got yet
		index = s.upstream.events.Seen(s.id)
	}
	s.mu.Unlock()
	if out == nil {
		out = &eventStream{id: id, isDone: true} // it is answered; a client may still have missed its end
	}
	done, err := s.resume(w, r, out, index)
	if err != nil {
		message.WriteError(w, http.StatusBadRequest,
			"Bad Request: the events after Last-Event-ID are not kept any more")
		return
	}
	if done == nil {
		return
	}
	defer out.detach(done)
	s.hang(r, done)
}
