package inprocess

import (
	"net/http"

	"github.com/pasteport/pasteport/adapters/mcp/jsonrpc"
	"github.com/pasteport/pasteport/adapters/mcp/response"
)

// withRefusedAnswers passes a request to a route of the SDK. When the SDK refuses the response to
// one of its requests, it gets a JSON-RPC error for that request.
func withRefusedAnswers(w http.ResponseWriter, r *http.Request, m jsonrpc.Message, next route) {
	switch {
	case m.Refused != nil:
		next(response.Discard(w), r, m)
		return
	case !m.HasResponse:
		next(w, r, m)
		return
	}
	seen := &answerStatus{ResponseWriter: w}
	next(seen, r.Clone(r.Context()), m)
	if refusesBody(seen.status) {
		for _, answer := range jsonrpc.Refuse(jsonrpc.ErrUnreadable, m.Body).Answers {
			other, replaced := m.Replace(r, answer)
			next(response.Discard(w), replaced, other)
		}
	}
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
