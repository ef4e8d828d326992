package mcp

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// firstStateless is the first revision without sessions. Later ones must reach the stateless handler too, which answers
// them with what it supports; hence every comparison is >=.
const firstStateless = "2026-07-28"

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	nameHeader    = "Mcp-Name"
)

// bodyLimit is how long a client may take to send a message.
const bodyLimit = 30 * time.Second

// route is the last step of a request, behind admit.
type route func(w http.ResponseWriter, r *http.Request, m message)

// admit ties the answer to the caller's grant (G16), reads the body, and asks for the scopes that it needs (G10). A body may take
// its time, and a token that ends meanwhile opens nothing.
func (s *Server) admit(next route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, r := s.streams.open(w, r)
		defer out.finish()
		var m message
		if r.Method == http.MethodPost {
			body, ok := readBody(w, r, s.options.MaxBody)
			if !ok {
				return
			}
			m = peek(body)
		}
		if out.over() {
			s.challenge.refuse(w, invalidToken(s.options.Scopes.Defaults()))
			return
		}
		if needed, lacking := s.policy.lacks(identityOf(r.Context()).caller, m.tools...); lacking {
			s.challenge.refuse(w, insufficientScope(needed))
			return
		}
		out.begin(m.listen || r.Method == http.MethodGet)
		next(out, r, m)
	})
}

// readBody buffers the body, so that a proxy in front never sees an answer before the end of its request.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyLimit)) // recorders in tests have no deadlines
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		rpcError(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return nil, false
	case err != nil:
		rpcError(w, http.StatusBadRequest, "Bad Request: the body cannot be read")
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

// dispatch finds the binding for a request to the endpoint. It does not go by the version header alone: clients of HTTP+SSE
// negotiate later revisions over it and then send that header.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, m message) {
	switch {
	case r.Method == http.MethodPost:
		s.post(w, r, m)
	case r.Header.Get(versionHeader) >= firstStateless:
		w.Header().Set("Allow", http.MethodPost)
		rpcError(w, http.StatusMethodNotAllowed, "Method Not Allowed: this revision has no sessions")
	case r.Method == http.MethodDelete, r.Method == http.MethodGet && r.Header.Get(sessionHeader) != "":
		s.inSession(w, r)
	case !strings.Contains(r.Header.Get("Accept"), eventStream):
		rpcError(w, http.StatusNotAcceptable, "Not Acceptable: this is a stream of text/event-stream")
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Type", eventStream)
	default:
		s.openLegacy(w, r)
	}
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, m message) {
	switch {
	case m.modern, r.Header.Get(versionHeader) >= firstStateless:
		decodeName(r.Header)
		s.stateless.ServeHTTP(w, r)
	case r.Header.Get(sessionHeader) != "":
		s.inSession(w, r)
	case !m.decoded:
		s.stateless.ServeHTTP(w, r) // which says what is malformed
	case !m.initialize:
		rpcError(w, http.StatusBadRequest, "Bad Request: Mcp-Session-Id is missing")
	case s.streams.full(identityOf(r.Context()).caller.Grant):
		unavailable(w, "There are too many open sessions")
	default:
		s.sessions.ServeHTTP(w, r)
	}
}

// inSession hides the session of another grant, where the SDK would say 403: after a new login a client still names its old
// session, and only 404 tells it to start another.
func (s *Server) inSession(w http.ResponseWriter, r *http.Request) {
	if s.streams.foreign(r.Header.Get(sessionHeader), identityOf(r.Context()).caller.Grant) {
		rpcError(w, http.StatusNotFound, "Not Found: there is no such session")
		return
	}
	s.sessions.ServeHTTP(w, r)
}

// decodeName reads a name that had to be encoded to fit into a header; the SDK compares it raw.
func decodeName(header http.Header) {
	encoded, prefixed := strings.CutPrefix(header.Get(nameHeader), "=?base64?")
	encoded, suffixed := strings.CutSuffix(encoded, "?=")
	if !prefixed || !suffixed {
		return
	}
	if name, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		header.Set(nameHeader, string(name))
	}
}
