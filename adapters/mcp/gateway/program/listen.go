package program

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
)

// listen answers a GET in a session: with the messages that belong to no call, or with the rest of
// a response whose connection broke.
func (s *session) listen(w http.ResponseWriter, r *http.Request) {
	if !response.Accepts(r, message.EventStream) {
		response.NotAcceptable(w, "a stream of "+message.EventStream)
		return
	}
	id, index, ok := lastEvent(r)
	if !ok {
		message.WriteError(w, http.StatusBadRequest, "Bad Request: Last-Event-ID is not an event id")
		return
	}
	s.mu.Lock()
	out := s.streams[id]
	if id == "" {
		out = s.listening
	}
	if r.Header.Get(message.LastEventHeader) == "" {
		index = s.upstream.events.Seen(s.id)
	}
	s.mu.Unlock()
	if out == nil {
		out = newStream(id) // it is answered; a client may still have missed its end
		out.isDone = true
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

// lastEvent returns the stream and the index of the last event that the client has.
func lastEvent(r *http.Request) (stream string, index int, ok bool) {
	last := r.Header.Get(message.LastEventHeader)
	if last == "" {
		return "", -1, true
	}
	stream, number, found := strings.Cut(last, eventSeparator)
	index, err := strconv.Atoi(number)
	return stream, index, found && err == nil && index >= 0
}
