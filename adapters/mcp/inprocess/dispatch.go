package inprocess

import (
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
)

// route answers a request that the guard has admitted.
type route func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message)

// Read implements guard.Backend.
func (s *Server) Read(_ *response.Writer, _ *http.Request, body []byte) jsonrpc.Message {
	m, err := jsonrpc.Peek(body)
	if err != nil {
		m.Refused = jsonrpc.Refuse(err, body)
	}
	return m
}

// Refuse implements guard.Backend.
func (s *Server) Refuse(out *response.Writer, _ *http.Request, m jsonrpc.Message) {
	m.Refused.Write(out)
}

// Serve implements guard.Backend.
func (s *Server) Serve(out *response.Writer, r *http.Request, m jsonrpc.Message) {
	withRefusedAnswers(out, r, m, s.dispatch)
}

// Deliver implements guard.LegacyBackend.
func (s *Server) Deliver(out *response.Writer, r *http.Request, m jsonrpc.Message) {
	withRefusedAnswers(out, r, m, s.deliver)
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
	case r.Header.Get(jsonrpc.VersionHeader) >= jsonrpc.FirstStateless:
		w.Header().Set("Allow", http.MethodPost)
		jsonrpc.WriteError(w, http.StatusMethodNotAllowed, "Method Not Allowed: this revision has no sessions")
	case r.Method == http.MethodDelete, r.Method == http.MethodGet && r.Header.Get(jsonrpc.SessionHeader) != "":
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
	case m.Stateless, r.Header.Get(jsonrpc.VersionHeader) >= jsonrpc.FirstStateless:
		jsonrpc.DecodeNameHeader(r.Header)
		s.stateless.ServeHTTP(w, r)
	case r.Header.Get(jsonrpc.SessionHeader) != "":
		s.inSession(w, r, m)
	case !m.Decoded:
		s.stateless.ServeHTTP(w, r) // its error describes the mistake
	case !m.Initialize:
		jsonrpc.WriteError(w, http.StatusBadRequest, "Bad Request: Mcp-Session-Id is missing")
	case s.responses.IsDraining():
		response.Unavailable(w, response.ShuttingDown)
	default:
		owner := s.owner(&response.IdentityOf(r.Context()).Caller)
		bound := &sessionIDWriter{ResponseWriter: w, bind: func(id string) (string, error) {
			return s.options.Sessions.BindSession(id, owner)
		}}
		s.serveSession(bound, r, m.Body, new(jsonrpc.Sequence))
	}
}
