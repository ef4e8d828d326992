package program

import (
	"encoding/json"
	"net/http"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	// codeEnded is in the range of JSON-RPC for errors of servers.
	codeEnded = -32000
	// codeUnsupportedRevision is the code of MCP for a revision that the server does not have.
	codeUnsupportedRevision = -32022
)

// route sends a message of the program to the client.
func (s *session) route(m message) {
	if !m.isResponse() {
		call, token, ok := jsonrpc.Unnumbered(m.progress)
		if ok {
			m.raw = jsonrpc.WithProgress(m.raw, token)
		}
		if out := s.streamOf(call); out != nil {
			s.send(out, m.raw, false)
		} else if m.isCall() {
			refusal := jsonrpc.ErrorFor([]byte(m.id.Text), rpc.CodeMethodNotFound,
				"the client accepts only JSON, and does not listen for requests")
			go s.write([][]byte{refusal}) // the program may read only after its output has been read
		}
		return
	}
	number, _ := m.answers()
	call, last := s.removeCall(number)
	if call == nil { // as after a cancellation
		s.output.unmatched(m.id.Text)
		return
	}
	isRefused := call.stream.isInitial && m.isError
	if !m.isError {
		s.negotiate(m)
	}
	s.send(call.stream, jsonrpc.WithID(m.raw, call.id.Text), last)
	if isRefused {
		s.end(errRefused)
	}
}

// negotiate records the revision in the answer to initialize.
func (s *session) negotiate(m message) {
	var result struct {
		Revision string `json:"protocolVersion"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision == "" && json.Unmarshal(m.result, &result) == nil {
		s.revision = result.Revision
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
// progress names its call; any other message belongs to the only call, if there is just one. The
// result is nil if no client could get the message, because each takes only answers.
func (s *session) streamOf(named int64) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[named]; c != nil {
		return c.stream
	}
	open := map[*stream]bool{}
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

func errorAnswer(id jsonrpc.ID, text string) []byte {
	return jsonrpc.ErrorFor([]byte(id.Text), codeEnded, text)
}

// refuseRevision answers a request of a revision without sessions, so that its client initializes a
// session.
func refuseRevision(w http.ResponseWriter, r *http.Request, m message) {
	// Texts always encode.
	data, _ := json.Marshal(map[string]any{"supported": revisions, "requested": r.Header.Get(jsonrpc.VersionHeader)})
	failure := &rpc.Error{Code: codeUnsupportedRevision,
		Message: "a program over stdio has sessions: initialize one", Data: data}
	connection.From(r.Context()).Refuse(oauth.Refuse(oauth.InvalidRequest, "U22", failure.Message))
	id := jsonrpc.ID{}
	if m.isCall() {
		id = m.id
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(jsonrpc.EncodeError([]byte(id.Text), failure))
}
