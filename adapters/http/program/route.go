package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

const (
	// maxMessage is the maximum length of a message of the program.
	maxMessage = 16 << 20
	// codeEnded is in the range of JSON-RPC for errors of servers.
	codeEnded = -32000
	// codeUnsupportedRevision is the code of MCP for a revision that the server does not have.
	codeUnsupportedRevision = -32022
)

// message is a JSON-RPC message. Its text is passed on, so that nothing in it changes.
type message struct {
	raw      []byte // in one line
	request  *rpc.Request
	response *rpc.Response
}

var errNoMessage = errors.New("it is no JSON-RPC message")

// parse returns the messages of a body or line: one, or those of a batch.
func parse(body []byte) (messages []message, err error) {
	var elements []json.RawMessage
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) == 0 || first[0] != '[' {
		elements = append(elements, body)
	} else if json.Unmarshal(body, &elements) != nil || len(elements) == 0 {
		return nil, errNoMessage
	}
	for _, element := range elements {
		m, err := parseOne(element)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func parseOne(body []byte) (m message, err error) {
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		return m, errNoMessage
	}
	decoded, err := rpc.DecodeMessage(line.Bytes())
	if err != nil {
		return m, errNoMessage
	}
	m.raw = line.Bytes()
	m.request, _ = decoded.(*rpc.Request)
	m.response, _ = decoded.(*rpc.Response)
	return m, nil
}

func (m message) isCall() bool { return m.request != nil && m.request.IsCall() }

func (m message) isInitialize() bool { return m.isCall() && m.request.Method == "initialize" }

// parameters are those that a session looks at.
type parameters struct {
	Meta struct {
		Progress json.RawMessage `json:"progressToken"`
		Revision json.RawMessage `json:"io.modelcontextprotocol/protocolVersion"`
	} `json:"_meta"`
	Progress  json.RawMessage `json:"progressToken"`
	RequestID any             `json:"requestId"`
}

func (m message) parameters() (p parameters) {
	if m.request != nil && len(m.request.Params) > 0 {
		_ = json.Unmarshal(m.request.Params, &p) // the program refuses params that it cannot read
	}
	return p
}

// isStateless reports whether the message names its revision, as 2026-07-28 does.
func (m message) isStateless() bool { return m.parameters().Meta.Revision != nil }

func (m message) progressToken() string { return string(m.parameters().Meta.Progress) }

// cancels returns the id of the request that the message cancels.
func (m message) cancels() (rpc.ID, bool) {
	if m.request == nil || m.request.Method != "notifications/cancelled" {
		return rpc.ID{}, false
	}
	id, err := rpc.MakeID(m.parameters().RequestID)
	return id, err == nil && id.IsValid()
}

// readMessages calls handle with each line that is a message. It ignores other lines, which many programs print at their start.
func readMessages(from io.Reader, handle func(message)) error {
	reader := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		switch {
		case len(line)+len(part) > maxMessage:
			return errLongMessage
		case err == bufio.ErrBufferFull: //nolint:errorlint // bufio returns the value itself
			line = append(line, part...)
			continue
		case err != nil:
			return err
		}
		if line != nil {
			part = append(line, part...)
		}
		messages, _ := parse(part)
		for _, m := range messages {
			handle(m)
		}
		line = nil
	}
}

// route sends a message of the program to the client.
func (s *session) route(m message) {
	if m.response == nil {
		s.send(s.streamOf(m), m.raw, false)
		return
	}
	out, last := s.answered(m.response.ID)
	if out == nil {
		return // nothing waits for it, as after a cancellation
	}
	isRefused := out.isInitial && m.response.Error != nil
	if m.response.Error == nil {
		s.negotiate(m)
	}
	s.send(out, m.raw, last)
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
	if s.revision == "" && json.Unmarshal(m.response.Result, &result) == nil {
		s.revision = result.Revision
	}
}

// answered removes a call, and returns its stream, nil for an unknown call. The stream has no further events after its last answer.
func (s *session) answered(id rpc.ID) (out *stream, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[id]
	if c == nil {
		return nil, false
	}
	delete(s.calls, id)
	c.stream.open--
	if last = c.stream.open == 0 && !s.legacy; last {
		delete(s.streams, c.stream.id)
	}
	return c.stream, last
}

// streamOf returns the stream for a request or notification of the program. Over stdio, only progress names its call; any other message belongs to
// the only call, if there is just one.
func (s *session) streamOf(m message) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.legacy {
		return s.listening
	}
	token, open := m.parameters().Progress, map[*stream]bool{}
	var newest *call
	for _, c := range s.calls {
		if token != nil && c.progress == string(token) {
			return c.stream
		}
		if c.stream.isInitial || !c.stream.attached.Load() {
			continue
		}
		if open[c.stream] = true; newest == nil || c.number > newest.number {
			newest = c
		}
	}
	if len(open) == 1 || newest != nil && !s.listening.attached.Load() {
		return newest.stream
	}
	return s.listening
}

func errorAnswer(id rpc.ID, text string) []byte {
	body, _ := rpc.EncodeMessage(&rpc.Response{ID: id, Error: &rpc.Error{Code: codeEnded, Message: text}}) // texts always encode
	return body
}

func writeAnswer(w http.ResponseWriter, status int, answer *rpc.Response) {
	body, _ := rpc.EncodeMessage(answer) // texts always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// refuseRevision answers a request of a revision without sessions, so that its client initializes a session.
func refuseRevision(w http.ResponseWriter, r *http.Request, m message) {
	data, _ := json.Marshal(map[string]any{"supported": revisions, "requested": r.Header.Get(versionHeader)}) // texts always encode
	failure := &rpc.Error{Code: codeUnsupportedRevision, Message: "a program over stdio has sessions: initialize one", Data: data}
	trace.From(r.Context()).Refuse(oauth.Refuse(oauth.InvalidRequest, "U22", failure.Message))
	answer := &rpc.Response{Error: failure}
	if m.isCall() {
		answer.ID = m.request.ID
	}
	writeAnswer(w, http.StatusBadRequest, answer)
}
