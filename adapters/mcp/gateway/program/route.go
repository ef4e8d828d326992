package program

import (
	"encoding/json"
	"strconv"
	"strings"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/mcp/message"
)

// route sends a message of the program to the client.
func (s *session) route(m message.Message) {
	if !m.IsResponse() {
		call, token, ok := message.Unnumbered(m.Params.Get("progressToken"))
		if ok {
			m.Params = m.Params.With("progressToken", token)
		}
		if out := s.streamOf(call); out != nil {
			s.send(out, m.Encode(), false)
		} else if m.IsCall() {
			// The program may read only after its output has been read.
			go s.tell(message.ErrorFor(m.ID, rpc.CodeMethodNotFound,
				"the client accepts only JSON, and does not listen for requests"))
		}
		return
	}
	// Some programs answer with a string, whose Key begins with a quotation mark.
	number, _ := strconv.ParseInt(strings.TrimPrefix(m.ID.Key, `"`), 10, 64)
	call, last := s.removeCall(number)
	if call == nil { // as after a cancellation
		s.output.log("an answer of a program matches no open call", "id", m.ID.Text)
		return
	}
	s.mu.Lock()
	var initialized struct{ ProtocolVersion string }
	if s.revision == "" && m.Error == nil && json.Unmarshal(m.Result, &initialized) == nil {
		s.revision = initialized.ProtocolVersion
	}
	s.mu.Unlock()
	m.ID = call.id
	s.send(call.stream, m.Encode(), last)
	if call.stream.isInitial && m.Error != nil {
		s.end(errRefused)
	}
}

// removeCall removes an answered call and returns it, nil for an unknown one. Its stream has no
// further events after the last answer.
func (s *session) removeCall(number int64) (removed *call, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[number]
	if c == nil {
		return nil, false
	}
	delete(s.calls, number)
	s.upstream.registry.EndCall(s.id)
	c.stream.open--
	if last = c.stream.open == 0; last {
		delete(s.streams, c.stream.id)
	}
	return c, last
}

// streamOf returns the stream for a request or notification of the program. Over stdio, only
// progress names its call; any other message belongs to the only call, if there is just one, or to
// the newest while no client listens. The result is nil if each client takes only answers.
func (s *session) streamOf(named int64) *eventStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[named]; c != nil {
		return c.stream
	}
	open := map[*eventStream]bool{}
	var newest *call
	takesAnswers := false
	for _, c := range s.calls {
		if c.stream.isInitial || !c.stream.attached.Load() {
			continue
		}
		if c.stream.isJSON {
			takesAnswers = true
			continue
		}
		if open[c.stream] = true; newest == nil || c.number > newest.number {
			newest = c
		}
	}
	if len(open) == 1 || newest != nil && !s.listening.attached.Load() {
		return newest.stream
	}
	if takesAnswers && !s.listening.attached.Load() {
		return nil
	}
	return s.listening
}

func errorAnswer(id message.ID, text string) []byte {
	return message.ErrorFor(id, message.CodeUnavailable, text).Encode()
}
