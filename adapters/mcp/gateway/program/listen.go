package program

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
)

// listen answers a GET in a session: with the messages that belong to no call, or with the rest of
// a response whose connection broke.
func (s *session) listen(w http.ResponseWriter, r *http.Request) {
	if !response.Accepts(r, jsonrpc.EventStream) {
		response.NotAcceptable(w, "a stream of "+jsonrpc.EventStream)
		return
	}
	id, index, ok := lastEvent(r)
	if !ok {
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: Last-Event-ID is not an event id")
		return
	}
	s.mu.Lock()
	out := s.streams[id]
	if id == "" {
		out = s.listening
	}
	if r.Header.Get(jsonrpc.LastEventHeader) == "" {
		index = s.upstream.events.Seen(s.id)
	}
	s.mu.Unlock()
	if out == nil {
		out = newStream(id) // it is answered; a client may still have missed its end
		out.isDone = true
	}
	done, err := s.resume(w, r, out, index)
	switch {
	case errors.Is(err, errNoMemory):
		response.Unavailable(w, response.TooManyBodies)
		return
	case err != nil:
		jsonrpc.WriteError(w, http.StatusBadRequest,
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
	last := r.Header.Get(jsonrpc.LastEventHeader)
	if last == "" {
		return "", -1, true
	}
	stream, number, found := strings.Cut(last, eventSeparator)
	index, err := strconv.Atoi(number)
	return stream, index, found && err == nil && index >= 0
}

// openLegacy answers the GET that opens a session of HTTP+SSE. The session ends with the stream.
func (u *Upstream) openLegacy(w http.ResponseWriter, r *http.Request, sender oauth.Caller, host oauth.HostToken) error {
	if !response.Accepts(r, jsonrpc.EventStream) {
		response.NotAcceptable(w, "a stream of "+jsonrpc.EventStream)
		return nil
	}
	s, err := u.start(r, sender, host, true)
	if err != nil {
		return err
	}
	defer s.end(errClosed)
	defer u.registry.Attend(s.id)()
	bound, err := u.options.Sessions.BindSession(s.id, u.owner(sender))
	if err != nil {
		return err
	}
	begin(w)
	done := s.listening.attach(w)
	defer s.listening.detach(done)
	address := u.options.MessagePath + "?" + sessionParameter + "=" + bound
	s.listening.write(jsonrpc.Event("endpoint", "", []byte(address)))
	late := time.AfterFunc(u.options.StartTimeout, func() {
		if s.negotiated() == "" {
			s.end(errStart)
		}
	})
	defer late.Stop()
	s.hang(r, done)
	return nil
}
