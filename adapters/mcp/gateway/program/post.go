package program

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/stream"
)

// serve answers a request in a session.
func (s *session) serve(w http.ResponseWriter, r *http.Request, messages []message.Message) {
	u := s.upstream
	defer u.registry.Attend(s.id)()
	version := r.Header.Get(message.VersionHeader)
	switch {
	case version != "" && version != s.negotiated() && !slices.Contains(revisions, version):
		message.WriteError(w, http.StatusBadRequest,
			"Bad Request: Mcp-Protocol-Version is not one of "+strings.Join(revisions, ", "))
	case r.Method == http.MethodDelete:
		s.end(errClosed)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet:
		s.listen(w, r)
	default:
		s.answer(w, r, messages)
	}
}

func (s *session) negotiated() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// answer answers a POST.
func (s *session) answer(w http.ResponseWriter, r *http.Request, messages []message.Message) {
	if !slices.ContainsFunc(messages, message.Message.IsCall) {
		s.writeAll(messages)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	out := &eventStream{id: rand.Text(), isJSON: !stream.Accepts(r, message.EventStream)}
	_ = s.upstream.events.Open(r.Context(), s.id, out.id) // never fails
	begin(w)
	isPrimed := s.negotiated() >= firstPrimed
	if !isPrimed {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
	}
	done := out.attach(w)
	defer out.detach(done)
	messages = s.register(out, messages) // attached, because a call without a reader counts as one that was left
	if isPrimed {
		s.send(out, nil, false) // the event for resumption
	}
	s.writeAll(messages)
	s.hang(r, done)
}

// begin sets the headers of a stream of events. stream.Negotiate turns it into JSON for a client
// that accepts only that.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", message.EventStream)
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
func (s *session) writeAll(messages []message.Message) {
	for _, m := range messages {
		id, cancels := m.Cancels()
		if !cancels {
			s.tell(m)
			continue
		}
		// Of several calls with the id, it prefers one whose client has not gone.
		number, _ := s.numbers.Cancelled(id, func(number int64) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			c := s.calls[number]
			return c != nil && !c.stream.attached.Load()
		})
		s.mu.Lock()
		c := s.calls[number]
		s.mu.Unlock()
		if c == nil {
			continue
		}
		m.Params = m.Params.With("requestId", strconv.FormatInt(c.number, 10))
		s.tell(m)
		time.AfterFunc(5*time.Second, func() { // many programs never answer a canceled request
			if c, last := s.removeCall(c.number); c != nil {
				s.send(c.stream, errorAnswer(c.id, "The request was cancelled"), last)
			}
		})
	}
}

// maxToken is the length in bytes of the longest progress token that is replaced.
const maxToken = 1 << 10

// register records the calls of a POST, and returns the messages as the program gets them: with the
// number of a call instead of its id, and with a progress token that no other call has in place of
// the client's, if that is not too long.
func (s *session) register(out *eventStream, messages []message.Message) []message.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	numbered := slices.Clone(messages)
	for i, m := range messages {
		if !m.IsCall() {
			continue
		}
		number := s.numbers.Next(m.ID)
		numbered[i].ID.Text = strconv.FormatInt(number, 10)
		if token := m.Meta.Get("progressToken"); len(token) <= maxToken {
			numbered[i].Meta = m.Meta.With("progressToken", message.Numbered(number, string(token)))
		}
		s.calls[number] = &call{id: m.ID, stream: out, number: number}
		out.open++
		s.upstream.registry.BeginCall(s.id)
	}
	s.streams[out.id] = out
	return numbered
}

// initialize answers the first POST of a session. It holds the response back until the program has
// answered, so that a failure gets its status.
func (s *session) initialize(w http.ResponseWriter, r *http.Request, messages []message.Message, bound string) error {
	defer s.upstream.registry.Attend(s.id)()
	out := &eventStream{id: rand.Text(), isInitial: true}
	_ = s.upstream.events.Open(r.Context(), s.id, out.id) // never fails
	begin(w)
	w.Header().Set(message.SessionHeader, bound)
	done := out.attach(w)
	opening := s.register(out, messages)
	late := time.AfterFunc(s.upstream.config.Patience, func() { s.end(errStart) })
	defer late.Stop()
	s.writeAll(opening)
	s.hang(r, done)
	out.detach(done)
	out.mu.Lock()
	isAnswered := out.next > 0
	out.mu.Unlock()
	if isAnswered {
		s.upstream.failure.Store(nil)
		return nil
	}
	s.end(errClosed) // unless it has ended: the client has gone
	cause := s.endedBy()
	for _, header := range []string{message.SessionHeader, "Content-Type", "Cache-Control"} {
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
