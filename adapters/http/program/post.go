package program

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/mcp/response"
)

// serve answers a request in a session of Streamable HTTP.
func (s *session) serve(w http.ResponseWriter, r *http.Request, body []byte) error {
	u := s.upstream
	defer u.registry.Attend(s.id)()
	queue, r := response.NewQueue(w, r, u.options.Bodies.Reserve(s.person), func(events []byte) { u.events.Wrote(s.id, events) })
	defer queue.Close()
	w = queue
	version := r.Header.Get(versionHeader)
	switch {
	case version != "" && version != s.negotiated() && !slices.Contains(revisions, version):
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: Mcp-Protocol-Version is none of "+strings.Join(revisions, ", "))
	case s.legacy:
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: this is a session of HTTP+SSE")
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
	if !accepts(r, response.EventStream) {
		refuseAccept(w)
		return
	}
	out := newStream(newStreamID())
	if id, ok := s.register(out, messages); !ok {
		refuseDuplicate(w, id)
		return
	}
	_ = s.upstream.events.Open(r.Context(), s.id, out.id) // never fails
	begin(w)
	done := out.attach(w)
	defer out.detach(done)
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
	w.Header().Set("Content-Type", response.EventStream)
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

func (s *session) writeAll(messages []message) {
	for _, m := range messages {
		s.write(m)
		if id, ok := m.cancels(); ok {
			s.expectCancellation(id)
		}
	}
}

// cancelDelay is how long the program may take to answer a request that the client has cancelled. Many never do.
const cancelDelay = 5 * time.Second

func (s *session) expectCancellation(id callID) {
	time.AfterFunc(cancelDelay, func() {
		if c, last := s.answered(id); c != nil {
			s.send(c.stream, errorAnswer(c.id, "The request was cancelled"), last)
		}
	})
}

// register records the calls of a POST. It returns false, and the id, if one has the id of an open call.
func (s *session) register(out *stream, messages []message) (duplicate callID, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := map[string]bool{}
	for _, m := range messages {
		if !m.isCall() {
			continue
		}
		if s.calls[m.id.key] != nil || ids[m.id.key] {
			return m.id, false
		}
		ids[m.id.key] = true
	}
	for _, m := range messages {
		if m.isCall() {
			s.requests++
			s.calls[m.id.key] = &call{id: m.id, stream: out, progress: m.progressToken(), number: s.requests}
			out.open++
			s.upstream.registry.BeginCall(s.id)
		}
	}
	if !s.legacy {
		s.streams[out.id] = out
	}
	return callID{}, true
}

func refuseDuplicate(w http.ResponseWriter, id callID) {
	writeAnswer(w, answerTo(id, &rpc.Error{Code: rpc.CodeInvalidRequest, Message: fmt.Sprintf("a request with the id %s is under way", id.text)}))
}

// initialize answers the first POST of a session. It holds the response back until the program has answered, so that a failure gets its status.
func (s *session) initialize(w http.ResponseWriter, r *http.Request, m message, bound string) error {
	defer s.upstream.registry.Attend(s.id)()
	out := newStream(newStreamID())
	out.isInitial = true
	s.register(out, []message{m})
	_ = s.upstream.events.Open(r.Context(), s.id, out.id) // never fails
	begin(w)
	w.Header().Set(sessionHeader, bound)
	done := out.attach(w)
	late := time.AfterFunc(s.upstream.options.StartTimeout, func() { s.end(errStart) })
	defer late.Stop()
	s.write(m)
	s.hang(r, done)
	out.detach(done)
	if out.isSent() {
		s.upstream.failure.Store(nil)
		return nil
	}
	s.end(errClosed) // unless it has ended: the client has gone
	cause := s.endedBy()
	for _, header := range []string{sessionHeader, "Content-Type", "Cache-Control"} {
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

// deliver passes a POST of HTTP+SSE to the program, whose answer goes to the stream of the session.
func (s *session) deliver(w http.ResponseWriter, r *http.Request, body []byte) error {
	messages, err := parse(body)
	if err != nil {
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: "+err.Error())
		return nil
	}
	defer s.upstream.registry.Attend(s.id)()
	if id, ok := s.register(s.listening, messages); !ok {
		refuseDuplicate(w, id)
		return nil
	}
	w.WriteHeader(http.StatusAccepted)
	_ = http.NewResponseController(w).Flush() // before the answer, for clients that read one after the other
	s.writeAll(messages)
	return nil
}
