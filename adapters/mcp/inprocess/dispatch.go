package inprocess

import (
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/adapters/mcp/response"
)

// Read implements guard.Backend.
func (s *Server) Read(_ *response.Writer, r *http.Request, text []byte) message.Body {
	b, err := message.Read(r.Header, text)
	if err != nil {
		b.Refused = message.Refuse(err, text)
	}
	return b
}

// Serve implements guard.Backend.
func (s *Server) Serve(out *response.Writer, r *http.Request, b message.Body) {
	s.dispatch(answering(out, b), r, b)
}

// Deliver implements guard.LegacyBackend.
func (s *Server) Deliver(out *response.Writer, r *http.Request, b message.Body) {
	s.deliver(answering(out, b), r, b)
}

// answering returns the response to a body. The client does not get the one to an error that
// replaces its answer.
func answering(out *response.Writer, b message.Body) http.ResponseWriter {
	if b.Refused != nil {
		return response.Discard(out)
	}
	return out
}

// dispatch selects the transport of a request to the endpoint. The version header alone does not
// determine it, because clients of HTTP+SSE may negotiate a later revision and then send its
// header.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, b message.Body) {
	isStream := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost && b.Listens()
	switch {
	case isStream && !response.Accepts(r, message.EventStream):
		response.NotAcceptable(w, "a stream of text/event-stream")
	case r.Method == http.MethodPost:
		s.post(w, r, b)
	case r.Header.Get(message.VersionHeader) >= message.FirstStateless:
		w.Header().Set("Allow", http.MethodPost)
		message.WriteError(w, http.StatusMethodNotAllowed, "Method Not Allowed: this revision has no sessions")
	case r.Method == http.MethodDelete, r.Method == http.MethodGet && r.Header.Get(message.SessionHeader) != "":
		r.Header.Set("Accept", message.EventStream) // the SDK needs it
		s.inSession(w, r, b)
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Type", message.EventStream)
	default:
		s.openLegacy(w.(*response.Writer), r)
	}
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, b message.Body) {
	memory := s.options.Bodies.Reserve(response.IdentityOf(r.Context()).Caller.Subject)
	w, finish, acceptable := response.Negotiate(w, r, b.IsBatch, memory)
	if !acceptable {
		return
	}
	defer finish()
	r.Header.Set("Accept", "application/json, "+message.EventStream) // the SDK needs both
	switch {
	case b.IsStateless(), r.Header.Get(message.VersionHeader) >= message.FirstStateless:
		message.DecodeNameHeader(r.Header)
		b.SetOn(r)
		s.stateless.ServeHTTP(w, r)
	case r.Header.Get(message.SessionHeader) != "":
		s.inSession(w, r, b)
	case !b.Has("initialize"):
		message.WriteError(w, http.StatusBadRequest, "Bad Request: Mcp-Session-Id is missing")
	case s.responses.IsDraining():
		response.Unavailable(w, response.ShuttingDown)
	default:
		owner := s.owner(&response.IdentityOf(r.Context()).Caller)
		bound := &sessionIDWriter{ResponseWriter: w, bind: func(id string) (string, error) {
			return s.options.Sessions.BindSession(id, owner)
		}}
		s.serveSession(bound, r, b, new(message.Sequence))
	}
}
