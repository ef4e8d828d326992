package mcp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/mcp/replica"
	"github.com/pasteport/pasteport/adapters/http/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// firstStateless is the first revision without sessions. Later ones must reach the stateless handler too, which answers
// them with what it supports; hence every comparison is >=.
const firstStateless = "2026-07-28"

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// route is the last step of a request, behind protect.
type route func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message)

// admit reads the body, and asks for the scopes that it needs (G10). A body may take its time, and a token that ends meanwhile opens
// nothing (G16).
func (s *Server) admit(out *response.Writer, r *http.Request) (m jsonrpc.Message, admitted bool) {
	if r.Method == http.MethodPost {
		body, ok := s.hear(out, r)
		if !ok {
			return m, false
		}
		if m, ok = s.read(out, r, body); !ok {
			return m, false
		}
	}
	if out.HasEnded() {
		s.challenge.refuse(out.ResponseWriter, s.invalid)
		return m, false
	}
	if needed, lacking := s.policy.lacks(out.Identity().Caller, m.Tools...); lacking {
		lacks := insufficientScope(needed)
		noteRefusal(r.Context(), lacks)
		s.challenge.refuse(out.ResponseWriter, lacks)
		return m, false
	}
	return m, true
}

// read looks into a body as the MCP server behind the guard will: the SDK, or any. A message that is refused is answered here, unless a
// request of the MCP server waits for it.
func (s *Server) read(out *response.Writer, r *http.Request, body []byte) (m jsonrpc.Message, ok bool) {
	m, err := s.parse(r.Header, body)
	if err == nil {
		return m, true
	}
	m.Refused = jsonrpc.Refuse(err, body)
	m.Refused.Trace(trace.From(r.Context()))
	if len(m.Refused.Answers) == 0 {
		m.Refused.Write(out)
		return m, false
	}
	return m, true
}

func (s *Server) parse(header http.Header, body []byte) (jsonrpc.Message, error) {
	if s.upstream != nil {
		return jsonrpc.ReadStrict(header, body)
	}
	return jsonrpc.Peek(body)
}

// answerCut tells a client that waits why there is no answer; without it there would be an empty 200.
func (s *Server) answerCut(out *response.Writer) {
	switch cause := out.Unanswered(); {
	case errors.Is(cause, response.ErrEnded):
		s.challenge.refuse(out.ResponseWriter, s.invalid)
	case errors.Is(cause, response.ErrDraining):
		response.Unavailable(out.ResponseWriter, shuttingDown)
	case errors.Is(cause, response.ErrEvicted):
		response.Unavailable(out.ResponseWriter, "There are too many open streams")
	}
}

// hear buffers the body, so that a proxy in front never sees an answer before the end of its request.
func (s *Server) hear(out *response.Writer, r *http.Request) ([]byte, bool) {
	body, err := out.ReadBody(s.options.MaxBody, s.options.Bodies)
	if err != nil {
		refuseBody(out.ResponseWriter, r, err)
		return nil, false
	}
	return body, true
}

// refuseBody answers a message that was not read to its end (G19).
func refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	switch recorder := trace.From(r.Context()); {
	case errors.As(err, new(jsonrpc.TooLargeError)):
		recorder.Refuse(oauth.Refuse(oauth.InvalidRequest, "G19", err.Error()))
		jsonrpc.WriteError(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large: "+err.Error())
	case errors.Is(err, jsonrpc.ErrNoMemory):
		recorder.Refuse(oauth.Refuse(oauth.TemporarilyUnavailable, "G19", err.Error()))
		response.Unavailable(w, response.TooManyBodies)
	default:
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: the body cannot be read")
	}
}

// dispatch finds the binding for a request to the endpoint. It does not go by the version header alone: clients of HTTP+SSE
// negotiate later revisions over it and then send that header.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
	switch {
	case r.Method == http.MethodPost:
		s.post(w, r, m)
	case r.Header.Get(versionHeader) >= firstStateless:
		w.Header().Set("Allow", http.MethodPost)
		jsonrpc.WriteError(w, http.StatusMethodNotAllowed, "Method Not Allowed: this revision has no sessions")
	case r.Method == http.MethodDelete, r.Method == http.MethodGet && r.Header.Get(sessionHeader) != "":
		s.inSession(w, r, m)
	case !strings.Contains(r.Header.Get("Accept"), response.EventStream):
		jsonrpc.WriteError(w, http.StatusNotAcceptable, "Not Acceptable: this is a stream of text/event-stream")
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Type", response.EventStream)
	default:
		s.openLegacy(w.(*response.Writer), r)
	}
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
	switch {
	case m.Stateless, r.Header.Get(versionHeader) >= firstStateless:
		jsonrpc.DecodeNameHeader(r.Header)
		s.stateless.ServeHTTP(w, r)
	case r.Header.Get(sessionHeader) != "":
		s.inSession(w, r, m)
	case !m.Decoded:
		s.stateless.ServeHTTP(w, r) // which says what is malformed
	case !m.Initialize:
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: Mcp-Session-Id is missing")
	case s.open.IsDraining():
		response.Unavailable(w, shuttingDown)
	default:
		owner := s.owner(&response.IdentityOf(r.Context()).Caller)
		s.sessions.ServeHTTP(&introduction{ResponseWriter: w, name: func(id string) (string, error) { return s.sessionName(id, owner) }}, r)
	}
}

// inSession leaves a request to whoever holds its session.
func (s *Server) inSession(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
	name := r.Header.Get(sessionHeader)
	if name == "" {
		s.sessions.ServeHTTP(w, r) // which says what is missing
		return
	}
	s.hold(w, r, name, replica.StreamableHTTP, m)
}
