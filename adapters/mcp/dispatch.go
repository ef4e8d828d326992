package mcp

import (
	"errors"
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/replica"
	"github.com/pasteport/pasteport/adapters/mcp/response"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/trace"
)

// firstStateless is the first revision without sessions. Unknown later revisions also go to the
// stateless handler, whose error names the supported ones.
const firstStateless = "2026-07-28"

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"

	lastEventHeader = "Last-Event-Id"

	requestIDHeader = "X-Request-Id"
)

// route answers a request that protect has admitted.
type route func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message)

// admit reads the body and checks the scopes that it needs. It checks the grant again after a slow
// body.
func (s *Server) admit(out *response.Writer, r *http.Request) (m jsonrpc.Message, admitted bool) {
	if r.Method == http.MethodPost {
		// Before any response, because not all proxies can read one while they send.
		body, err := out.ReadBody(s.options.MaxBody, s.options.Bodies)
		if err != nil {
			refuseBody(out.ResponseWriter, r, err)
			return m, false
		}
		if m, admitted = s.readMessage(out, r, body); !admitted {
			return m, false
		}
	}
	if out.HasEnded() {
		s.challenge.refuse(out.ResponseWriter, s.invalid)
		return m, false
	}
	if needed, lacking := s.policy.missingScopes(out.Identity().Caller, m.Tools...); lacking {
		refused := insufficientScope(needed)
		traceRefusal(r.Context(), refused)
		s.challenge.refuse(out.ResponseWriter, refused)
		return m, false
	}
	return m, true
}

// readMessage parses a body and answers one that is invalid or names what the caller may not use.
// If that has a response to a request of the MCP server, it is passed on as m.Refused instead.
func (s *Server) readMessage(out *response.Writer, r *http.Request, body []byte) (m jsonrpc.Message, ok bool) {
	m, err := s.parse(r.Header, body)
	if err != nil {
		m.Refused = jsonrpc.Refuse(err, body)
	} else if s.upstream != nil {
		m.Refused = s.refuseNames(out, r, m)
	}
	if m.Refused == nil {
		return m, true
	}
	m.Refused.Trace(trace.From(r.Context()))
	if len(m.Refused.Answers) == 0 {
		s.writeRefused(out, r, m)
		return m, false
	}
	return m, true
}

// parse is strict in a gateway, whose upstream may use any JSON parser.
func (s *Server) parse(header http.Header, body []byte) (jsonrpc.Message, error) {
	if s.upstream != nil {
		return jsonrpc.ReadStrict(header, body)
	}
	return jsonrpc.Peek(body)
}

// answerEnded answers a request whose response ended before it began; net/http would send an empty
// 200.
func (s *Server) answerEnded(out *response.Writer) {
	switch cause := out.Unanswered(); {
	case errors.Is(cause, response.ErrEnded):
		s.challenge.refuse(out.ResponseWriter, s.invalid)
	case errors.Is(cause, response.ErrDraining):
		response.Unavailable(out.ResponseWriter, shuttingDown)
	case errors.Is(cause, response.ErrEvicted):
		response.Unavailable(out.ResponseWriter, "There are too many open streams")
	}
}

// refuseBody answers a request whose body was not read to its end.
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

// dispatch selects the transport of a request to the endpoint. The version header alone does not
// determine it, because clients of HTTP+SSE may negotiate a later revision and then send its
// header.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
	isStream := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost && m.Listen
	switch {
	case isStream && !response.Accepts(r, jsonrpc.EventStream):
		response.NotAcceptable(w, "a stream of text/event-stream")
	case r.Method == http.MethodPost:
		s.post(w, r, m)
	case r.Header.Get(versionHeader) >= firstStateless:
		w.Header().Set("Allow", http.MethodPost)
		jsonrpc.WriteError(w, http.StatusMethodNotAllowed, "Method Not Allowed: this revision has no sessions")
	case r.Method == http.MethodDelete, r.Method == http.MethodGet && r.Header.Get(sessionHeader) != "":
		r.Header.Set("Accept", jsonrpc.EventStream) // the SDK needs it
		s.inSession(w, r, m)
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Type", jsonrpc.EventStream)
	default:
		s.openLegacy(w.(*response.Writer), r)
	}
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
	memory := s.options.Bodies.Reserve(response.IdentityOf(r.Context()).Caller.Subject)
	w, finish, acceptable := response.Negotiate(w, r, m.Body, memory)
	if !acceptable {
		return
	}
	defer finish()
	r.Header.Set("Accept", "application/json, "+jsonrpc.EventStream) // the SDK needs both
	switch {
	case m.Stateless, r.Header.Get(versionHeader) >= firstStateless:
		jsonrpc.DecodeNameHeader(r.Header)
		s.stateless.ServeHTTP(w, r)
	case r.Header.Get(sessionHeader) != "":
		s.inSession(w, r, m)
	case !m.Decoded:
		s.stateless.ServeHTTP(w, r) // its error describes the mistake
	case !m.Initialize:
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: Mcp-Session-Id is missing")
	case s.responses.IsDraining():
		response.Unavailable(w, shuttingDown)
	default:
		owner := s.owner(&response.IdentityOf(r.Context()).Caller)
		bound := &sessionIDWriter{ResponseWriter: w, bind: func(id string) (string, error) {
			return s.bindSession(id, owner)
		}}
		s.serveSession(bound, r, m.Body, new(jsonrpc.Sequence))
	}
}

// inSession answers a request of Streamable HTTP in a session.
func (s *Server) inSession(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
	bound := r.Header.Get(sessionHeader)
	if bound == "" {
		s.sessions.ServeHTTP(w, r) // its error names the missing header
		return
	}
	s.routeSession(w, r, bound, replica.StreamableHTTP, m)
}
