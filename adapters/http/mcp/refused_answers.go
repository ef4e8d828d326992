package mcp

import (
	"bytes"
	"io"
	"net/http"

	"github.com/pasteport/pasteport/adapters/http/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/http/mcp/response"
)

// serve hands a message on. Of one that is refused, only errors for the requests of the MCP server go on: without them it would wait for
// its answer for ever.
func (s *Server) serve(out *response.Writer, r *http.Request, m jsonrpc.Message, next route) {
	if m.Refused == nil {
		next(out, r, m)
		return
	}
	for _, answer := range m.Refused.Answers {
		if out.IsAwaited() {
			send(answer, out, r, m, next)
		}
	}
	if out.IsAwaited() {
		m.Refused.Write(out)
	}
}

// settling serves messages that the SDK may refuse. When it refuses the answer to one of its requests, it gets an error for that request.
func settling(next route) route {
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
				send(answer, discard(w), r, m, next)
			}
		}
	}
}

// send serves a copy of the request with another body. A copy, because next changes the session header.
func send(body []byte, w http.ResponseWriter, r *http.Request, m jsonrpc.Message, next route) {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	m.Body = body
	next(w, r, m)
}

// refusesBody reports that a status is about the body and not about the session or the caller.
func refusesBody(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnsupportedMediaType || status == http.StatusUnprocessableEntity
}

// answerStatus notes the status of an answer.
type answerStatus struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the first status.
func (a *answerStatus) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answerStatus) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// discarded is the answer to a message that the client has not sent.
type discarded struct{ header http.Header }

// discard keeps the headers that are there already: one of them names the request.
func discard(w http.ResponseWriter) discarded { return discarded{w.Header().Clone()} }

// Header implements http.ResponseWriter.
func (d discarded) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (discarded) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (discarded) Write(p []byte) (int, error) { return len(p), nil }

// FlushError is what http.ResponseController calls.
func (discarded) FlushError() error { return nil }
