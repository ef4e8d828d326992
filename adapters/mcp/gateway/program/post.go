package program

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
)

// serve answers a request in a session.
func (s *session) serve(w http.ResponseWriter, r *http.Request, body []byte) error {
	u := s.upstream
	defer u.registry.Attend(s.id)()
	queue, r := response.NewQueue(w, r, u.options.Bodies.Reserve(s.person), func(events []byte) {
		u.events.Wrote(s.id, events)
	})
	defer queue.Close()
	w = queue
	version := r.Header.Get(jsonrpc.VersionHeader)
	switch {
	case version != "" && version != s.negotiated() && !slices.Contains(revisions, version):
		jsonrpc.WriteError(w, http.StatusBadRequest,
			"Bad Request: Mcp-Protocol-Version is not one of "+strings.Join(revisions, ", "))
	case r.Method == http.MethodDelete:
		s.end(errClosed)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet:
		s.listen(w, r)
	default:
		s.answer(w, r, body)
	}
	return nil
}

func (s *session) negotiated() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// answer answers a POST.
func (s *session) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	messages, err := parse(body)
	if err != nil {
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: "+err.Error())
		return
	}
	if !slices.ContainsFunc(messages, message.isCall) {
		s.writeAll(messages)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	out := newStream(newStreamID())
	out.isJSON = !response.Accepts(r, jsonrpc.EventStream)
	_ = s.upstream.events.Open(r.Context(), s.id, out.id) // never fails
	begin(w)
	done := out.attach(w)
	defer out.detach(done)
	s.register(out, messages) // attached, because a call without a reader counts as one whose client has gone
	if s.negotiated() >= firstPrimed {
		s.send(out, nil, false)
	} else {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
	}
	s.writeAll(messages)
	s.hang(r, done)
}

// begin sets the headers of a stream of events.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", jsonrpc.EventStream)
	w.Header().Set("Cache-Control", "no-cache, no-transform")
}

// hang waits for the end of a response.
func (s *session) hang(r *http.Request, done <-chan struct{}) {
	select {
	case <-done:
	case <-s.ended:
	case <-r.Context().Done():
	}
}

// writeAll passes messages on, except for a cancellation that does not identify an open call.
func (s *session) writeAll(messages []message) {
	for _, m := range messages {
		id, cancels := m.cancels()
		if !cancels {
			s.write(m.forProgram())
			continue
		}
		if c := s.cancelled(id); c != nil {
			s.write(jsonrpc.WithRequestID(m.raw, strconv.FormatInt(c.number, 10)))
			s.expectCancellation(c)
		}
	}
}

// cancelled returns the open call that a cancellation means, nil for none.
func (s *session) cancelled(id jsonrpc.ID) *call {
	number, _ := s.numbers.Cancelled(id, s.hasGone)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[number]
}

// hasGone reports whether a call is open and its client has gone.
func (s *session) hasGone(number int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[number]
	return c != nil && !c.stream.attached.Load()
}

// cancelDelay is how long the program may take to answer a request that the client has cancelled.
// Many never do.
const cancelDelay = 5 * time.Second

func (s *session) expectCancellation(c *call) {
	time.AfterFunc(cancelDelay, func() {
		if c, last := s.removeCall(c.number); c != nil {
			s.send(c.stream, errorAnswer(c.id, "The request was cancelled"), last)
		}
	})
}

// register records the calls of a POST, and numbers them.
func (s *session) register(out *stream, messages []message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range messages {
		if m.isCall() {
			number := s.numbers.Next(m.id)
			messages[i].number = number
			s.calls[number] = &call{id: m.id, stream: out, number: number}
			out.open++
			s.upstream.registry.BeginCall(s.id)
		}
	}
	s.streams[out.id] = out
}

// initialize answers the first POST of a session. It holds the response back until the program has
// answered, so that a failure gets its status.
func (s *session) initialize(w http.ResponseWriter, r *http.Request, m message, bound string) error {
	defer s.upstream.registry.Attend(s.id)()
	out := newStream(newStreamID())
	out.isInitial = true
	opening := []message{m}
	_ = s.upstream.events.Open(r.Context(), s.id, out.id) // never fails
	begin(w)
	w.Header().Set(jsonrpc.SessionHeader, bound)
	done := out.attach(w)
	s.register(out, opening)
	late := time.AfterFunc(s.upstream.options.StartTimeout, func() { s.end(errStart) })
	defer late.Stop()
	s.writeAll(opening)
	s.hang(r, done)
	out.detach(done)
	if out.isSent() {
		s.upstream.failure.Store(nil)
		return nil
	}
	s.end(errClosed) // unless it has ended: the client has gone
	cause := s.endedBy()
	for _, header := range []string{jsonrpc.SessionHeader, "Content-Type", "Cache-Control"} {
		w.Header().Del(header)
	}
	if errors.Is(cause, errClosed) {
		return failed(http.StatusServiceUnavailable, "U24", "was ended", cause)
	}
	quoted := s.output.quote(cause)
	s.upstream.failure.Store(&quoted)
	if errors.Is(cause, errStart) {
		return failed(http.StatusGatewayTimeout, "U9", "did not answer in time", quoted)
	}
	return failed(http.StatusBadGateway, "U9", "does not start", quoted)
}
