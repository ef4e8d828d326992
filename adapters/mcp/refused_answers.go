package mcp

import (
	"bytes"
	"io"
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
)

// serve passes a message to next. For a refused response it passes a JSON-RPC error instead,
// because the MCP server would wait for the response forever.
func (s *Server) serve(out *response.Writer, r *http.Request, m jsonrpc.Message, next route) {
	if m.Refused == nil {
		next(out, r, m)
		return
	}
	for _, answer := range m.Refused.Answers {
		if out.IsAwaited() {
			serveBody(answer, out, r, m, next)
		}
	}
	if out.IsAwaited() {
		s.writeRefused(out, r, m)
	}
}

// withRefusedAnswers wraps a route of the SDK. When the SDK refuses the response to one of its
// requests, it gets a JSON-RPC error for that request.
func withRefusedAnswers(next route) route {
	return func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		switch {
		case m.Refused != nil:
			next(discard(w), r, m)
			return
		case !m.HasResponse:
			next(w, r, m)
			return
		}
		seen := &answerStatus{ResponseWriter: w}
		next(seen, r.Clone(r.Context()), m)
		if refusesBody(seen.status) {
			for _, answer := range jsonrpc.Refuse(jsonrpc.ErrUnreadable, m.Body).Answers {
				serveBody(answer, discard(w), r, m, next)
			}
		}
	}
}

// serveBody passes a copy of the request with another body to next, which changes headers of the
// request.
func serveBody(body []byte, w http.ResponseWriter, r *http.Request, m jsonrpc.Message, next route) {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	m.Body = body
	next(w, r, m)
}

// refusesBody reports whether a status refuses the body, and not the session or the caller.
func refusesBody(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnsupportedMediaType ||
		status == http.StatusUnprocessableEntity
}

// answerStatus records the status of a response.
type answerStatus struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answerStatus) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is called by http.ResponseController.
func (a *answerStatus) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// discarded drops the response to a message that the client has not sent.
type discarded struct{ header http.Header }

// discard copies the headers of w, because one of them has the id of the request.
func discard(w http.ResponseWriter) discarded { return discarded{w.Header().Clone()} }

// Header implements http.ResponseWriter.
func (d discarded) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (discarded) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (discarded) Write(p []byte) (int, error) { return len(p), nil }

// FlushError is called by http.ResponseController.
func (discarded) FlushError() error { return nil }
